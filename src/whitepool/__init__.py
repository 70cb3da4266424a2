"""whitepool: sentence embeddings from a frozen language model by pooling and whitening."""
