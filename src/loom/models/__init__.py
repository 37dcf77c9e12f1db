"""Models from outside, behind protocols: what they promise, where their files are, how they run."""
