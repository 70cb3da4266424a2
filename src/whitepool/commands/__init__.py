"""The console command `whitepool` and what stands behind its words."""
