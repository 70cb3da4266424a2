"""report.html: one page that shows a run or a multirun, in one file and without a network."""
