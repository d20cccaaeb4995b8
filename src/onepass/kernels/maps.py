"""Feature maps z(x) for linear learners: kernels without stored vectors, in fixed memory.

⟨z(x), z(x')⟩ is K(x, x') or close to it, so `make_pipeline(RandomFourier(...), LinearClassifier("pa1"))` is a kernel
learner whose memory and time per example do not grow. All maps are scikit-learn transformers.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..errors import InputError, ParameterError
from ..scheme.rounds import Array
from ..scheme.sizes import require_room
from . import functions as kernels
from .functions import Kernel

__all__ = ["GaussianBasis", "HistogramMap", "Nystrom", "RandomFourier"]

FEWER = "transform fewer rows at a time"


class _Map(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    def _rows(self, X: Any, *, reset: bool) -> Array:
        try:
            return np.asarray(validate_data(self, X, reset=reset, dtype=np.float64))
        except ValueError as error:
            raise InputError(str(error)) from None


class GaussianBasis(_Map):
    """z_j(x) = exp(−‖x − c_j‖²/(2h²)), where c_j are the `centres` (the rows of `fit` unless given).

    A linear model on z is not a kernel learner with that kernel: its steps divide by ‖z‖², not by K(x, x).
    """

    def __init__(self, centres: Any = None, h: float = 1.0) -> None:
        self.centres = centres
        self.h = h

    def fit(self, X: Any, y: Any = None) -> Self:
        if not (isinstance(self.h, (int, float)) and 0 < self.h < np.inf):
            raise ParameterError(f"h={self.h!r}: expected a finite number > 0")
        rows = self._rows(X, reset=True)
        centres = rows.copy() if self.centres is None else np.array(self.centres, dtype=np.float64)
        if centres.ndim != 2 or centres.shape[1] != rows.shape[1] or not np.all(np.isfinite(centres)):
            raise ParameterError(f"centres must be rows of {rows.shape[1]} finite numbers, got shape {centres.shape}")
        self.centres_ = centres
        return self

    def transform(self, X: Any) -> Array:
        check_is_fitted(self)
        return kernels.RBF(1.0 / (2.0 * self.h**2)).block(self._rows(X, reset=False), self.centres_)


class RandomFourier(_Map):
    """Random Fourier features (Rahimi and Recht 2007) of `RBF` and `Laplacian`.

    form="paired": z = √(2/D)[cos ω_jᵀx, sin ω_jᵀx] with D/2 draws of ω; ‖z‖ = 1.
    form="phase": z_j = √(2/D) cos(ω_jᵀx + b_j).
    RBF(γ): ω ~ N(0, 2γI). Laplacian(γ): each coordinate of ω ~ Cauchy(0, γ). The error is O(D^(−1/2)).
    """

    def __init__(self, kernel: str | Kernel = "rbf", D: int = 1000, *, form: str = "paired", seed: int = 0) -> None:
        self.kernel = kernel
        self.D = D
        self.form = form
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:
        d = self._rows(X, reset=True).shape[1]
        kernel = kernels.make(self.kernel).resolved(d)
        if self.form not in ("paired", "phase"):
            raise ParameterError(f"form={self.form!r}: expected 'paired' or 'phase'")
        D = self.D
        if isinstance(D, bool) or not isinstance(D, (int, np.integer)) or D < 1 or (self.form == "paired" and D % 2):
            raise ParameterError(f"D={D!r}: expected a whole number >= 1, even where form='paired'")
        require_room((d + 1) * int(D), f"RandomFourier(D={D}) of {d} features", "choose a smaller D")
        random = np.random.default_rng(self.seed)
        shape = (d, D // 2 if self.form == "paired" else D)
        if isinstance(kernel, kernels.RBF):
            self.omega_ = random.normal(scale=np.sqrt(2.0 * float(kernel.gamma or 0.0)), size=shape)
        elif isinstance(kernel, kernels.Laplacian):
            self.omega_ = float(kernel.gamma or 0.0) * random.standard_cauchy(size=shape)
        else:
            raise ParameterError(f"kernel={kernel!r}: random Fourier features are for rbf and laplacian; use Nystrom")
        self.phase_ = random.uniform(0.0, 2.0 * np.pi, size=shape[1])
        return self

    def transform(self, X: Any) -> Array:
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        require_room(2 * len(rows) * int(self.D), f"{len(rows)} rows of RandomFourier(D={self.D})", FEWER)
        angles = rows @ self.omega_
        if self.form == "phase":
            return np.asarray(np.sqrt(2.0 / self.D) * np.cos(angles + self.phase_))
        return np.asarray(np.sqrt(2.0 / self.D) * np.hstack([np.cos(angles), np.sin(angles)]))


class HistogramMap(_Map):
    """Homogeneous maps (Vedaldi and Zisserman 2012) of the additive kernels `Chi2` and `HistogramIntersection`.

    With L = `step`, each x_j ≥ 0 becomes √(x L κ(0)) and, for i = 1 … `order`, √(2x L κ(iL))·{cos, sin}(iL ln x).
    κ(λ) is sech(πλ) for χ², and (2/π)/(1 + 4λ²) for the intersection, for which the map converges slowly.
    """

    def __init__(self, kernel: str = "chi2", order: int = 2, *, step: float = 0.5) -> None:
        self.kernel = kernel
        self.order = order
        self.step = step

    def fit(self, X: Any, y: Any = None) -> Self:
        if self.kernel not in ("chi2", "intersection"):
            raise ParameterError(f"kernel={self.kernel!r}: expected 'chi2' or 'intersection'")
        if isinstance(self.order, bool) or not isinstance(self.order, (int, np.integer)) or self.order < 0:
            raise ParameterError(f"order={self.order!r}: expected a whole number >= 0")
        if not (isinstance(self.step, (int, float)) and 0 < self.step < np.inf):
            raise ParameterError(f"step={self.step!r}: expected a finite number > 0")
        self._histograms(self._rows(X, reset=True))
        require_room(4 * int(self.order), f"HistogramMap(order={self.order})", "choose a smaller order")
        at = self.step * np.arange(self.order + 1)
        spectrum = 1.0 / np.cosh(np.pi * at) if self.kernel == "chi2" else (2.0 / np.pi) / (1.0 + 4.0 * at**2)
        self.weights_ = np.sqrt(self.step * spectrum * np.where(at == 0, 1.0, 2.0))
        return self

    def transform(self, X: Any) -> Array:
        check_is_fitted(self)
        rows = self._histograms(self._rows(X, reset=False))
        numbers = 2 * rows.size * (2 * int(self.order) + 1)
        require_room(numbers, f"{len(rows)} rows of HistogramMap(order={self.order})", FEWER)
        roots, logs = np.sqrt(rows), np.log(np.where(rows > 0, rows, 1.0))
        parts = [self.weights_[0] * roots]
        for i in range(1, self.order + 1):
            angle = i * self.step * logs
            parts += [self.weights_[i] * roots * np.cos(angle), self.weights_[i] * roots * np.sin(angle)]
        return np.hstack(parts)

    @staticmethod
    def _histograms(rows: Array) -> Array:
        if np.any(rows < 0):
            raise InputError("Negative values in data for HistogramMap: expected numbers >= 0; shift the features")
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


class Nystrom(_Map):
    """z(x) = Λ^(−1/2)Uᵀ k_L(x), where K_LL = UΛUᵀ is the Gram matrix of the landmarks l_i.

    The landmarks are given, or `n_landmarks` different rows of `fit` are drawn. The map is exact on the landmarks.
    Eigenvalues up to 1e-10 of the largest are left out. `weights_of(c)` is the w with ⟨w, z(x)⟩ = Σ c_i K(l_i, x): with
    it a kernel learner on the landmarks continues as a linear learner.
    """

    def __init__(
        self, kernel: str | Kernel = "rbf", n_landmarks: int = 100, *, landmarks: Any = None, seed: int = 0
    ) -> None:
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:
        rows = self._rows(X, reset=True)
        m = self.n_landmarks
        if isinstance(m, bool) or not isinstance(m, (int, np.integer)) or m < 1:
            raise ParameterError(f"n_landmarks={m!r}: expected a whole number >= 1")
        if self.landmarks is None:
            distinct = np.unique(rows, axis=0)
            chosen = np.random.default_rng(self.seed).permutation(len(distinct))[:m]
            self.landmarks_ = distinct[np.sort(chosen)]
        else:
            self.landmarks_ = np.array(self.landmarks, dtype=np.float64)
            if self.landmarks_.ndim != 2 or self.landmarks_.shape[1] != rows.shape[1]:
                raise ParameterError(
                    f"landmarks has shape {self.landmarks_.shape}: expected rows of {rows.shape[1]} numbers"
                )
        self.kernel_ = kernels.make(self.kernel).resolved(rows.shape[1])
        if not self.kernel_.definite():
            raise ParameterError(
                f"kernel={self.kernel_!r} may have a Gram matrix that is not definite; use rbf, linear or polynomial"
            )
        m = len(self.landmarks_)
        require_room(4 * m * m, f"Nystrom of {m} landmarks", "use fewer landmarks (n_landmarks)")
        values, vectors = np.linalg.eigh(self.kernel_.block(self.landmarks_, self.landmarks_))
        definite = values > 1e-10 * values[-1]
        self.projection_ = vectors[:, definite] / np.sqrt(values[definite])
        self.roots_ = vectors[:, definite] * np.sqrt(values[definite])
        return self

    def transform(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.asarray(self.kernel_.block(self._rows(X, reset=False), self.landmarks_) @ self.projection_)

    def weights_of(self, coefficients: Any) -> Array:
        """w = Λ^(1/2)Uᵀc."""
        check_is_fitted(self)
        return np.asarray(self.roots_.T @ np.asarray(coefficients, dtype=np.float64))
