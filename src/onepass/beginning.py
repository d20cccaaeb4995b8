"""Estimators with one score, which may begin at an example's initial prediction."""

from __future__ import annotations

from typing import Any

from .estimator import LinearEstimator

__all__ = ["BeginningAtBase"]


class BeginningAtBase(LinearEstimator):
    """`base` is where the score of an example begins, 0 if nothing is said: the score is base + ⟨w, x⟩."""

    def learn_one(self, x: Any, y: Any, importance: float = 1.0, base: float = 0.0) -> None:
        """Learn one example: x a mapping of names to numbers, strings or booleans, or a row of numbers."""
        model = self._model
        if model is None:
            with self._learning() as model:
                model.learn_one(x, y, importance, base)
        else:
            model.learn_one(x, y, importance, base)

    def learn_many(self, X: Any, y: Any, importance: Any = None, base: Any = None) -> None:
        """Learn rows in order: an array, a frame, a CSR matrix or a list of mappings."""
        with self._learning() as model:
            model.learn_many(X, y, importance, base)

    def predict_many(self, X: Any, base: Any = None) -> Any:
        return (self._model or self._new_model()).predict_many(X, base)

    def predict_then_learn(self, X: Any, y: Any, importance: Any = None, base: Any = None) -> Any:
        """For each row the prediction made just before that row is learned: a prequential run in one call."""
        with self._learning() as model:
            return model.predict_then_learn(X, y, importance, base)
