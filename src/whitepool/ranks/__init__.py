"""One pass on several processes, through Lightning: batches dealt, results brought to the first."""
