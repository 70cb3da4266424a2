"""Word vectors as a model of one static layer: GloVe, word2vec and fastText files."""
