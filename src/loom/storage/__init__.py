"""Where rows live: one narrow interface that runs SQL, and engines behind it."""
