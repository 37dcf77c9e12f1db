"""What an operation is, and the one path every call takes."""
