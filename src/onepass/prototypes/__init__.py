"""Learners whose knowledge is points: k-means, learning vector quantisation, nearest neighbours."""
