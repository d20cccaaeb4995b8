"""scikit-learn's contract and the stream's, over the models."""
