"""Learners that represent data by points: k-means, learning vector quantisation, nearest neighbours."""
