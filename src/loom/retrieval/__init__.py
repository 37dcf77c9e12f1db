"""Ranking, pure: lists in, lists out. Nothing here reads the store or the clock."""
