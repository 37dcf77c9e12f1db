"""The command line: a light top parser, and a module for each command.

`main` knows the commands by name and loads one module, so that `loom --help`
costs no more than argparse. `shell` is what commands share: the settings, and
one `call` that goes to the local store or over HTTP.
"""
