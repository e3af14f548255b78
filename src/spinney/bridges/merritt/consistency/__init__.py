"""What others left half done in the queue: found by `check`, mended by `repair`."""
