"""One structured profile a user: shaped by the namespace's JSON Schema, built later, and honest about its age.

`interface` is what a builder is given and gives back.
"""
