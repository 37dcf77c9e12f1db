"""Work done later: enqueued in the transaction of the write that causes it, done by a worker."""
