"""BERT-flow: an invertible network over frozen vectors, trained by maximum likelihood."""
