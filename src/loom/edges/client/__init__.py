"""The Python client, imported by its users as `loom.client`.

* `core` decides everything without doing input or output: what a request looks
  like, what an answer means, whether to try again.
* `drivers` moves the bytes, once blocking and once not.
* `planes` is generated from the registry: a typed method for each operation.
"""
