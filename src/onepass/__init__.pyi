"""The types of what `__init__.py` loads lazily; `tests/test_imports.py` compares the two."""

from collections.abc import Callable, Mapping
from typing import Any

from . import budgets as budgets
from . import compose as compose
from . import convex as convex
from . import datasets as datasets
from . import drift as drift
from . import errors as errors
from . import evaluation as evaluation
from . import experts as experts
from . import kernels as kernels
from . import metrics as metrics
from . import play as play
from . import reductions as reductions
from . import rules as rules
from . import scheme as scheme
from . import transforms as transforms
from .checks.learners import check_learner as check_learner
from .checks.rules import check_rule as check_rule
from .compose import continual as continual
from .convex.regret.curves import Regret as Regret
from .convex.regret.curves import regret as regret
from .estimators import decoders as decoders
from .estimators.ensemble import ExpertEnsemble as ExpertEnsemble
from .estimators.kernel import KernelClassifier as KernelClassifier
from .estimators.kernel import KernelRegressor as KernelRegressor
from .estimators.lasvm import LaSVMClassifier as LaSVMClassifier
from .estimators.linear import LinearClassifier as LinearClassifier
from .estimators.linear import LinearRegressor as LinearRegressor
from .estimators.multilabel import MultilabelClassifier as MultilabelClassifier
from .estimators.oneclass import OneClass as OneClass
from .estimators.ranking import Ranker as Ranker
from .estimators.structured import StructuredLearner as StructuredLearner
from .evaluation import DelayedStream as DelayedStream
from .evaluation import Distributed as Distributed
from .evaluation import Hindsight as Hindsight
from .evaluation import PendingLabels as PendingLabels
from .evaluation import Run as Run
from .evaluation import RunState as RunState
from .evaluation import distributed as distributed
from .evaluation import prequential as prequential
from .evaluation import report as report
from .generative.mixture import BernoulliMixture as BernoulliMixture
from .generative.mixture import GaussianMixture as GaussianMixture
from .generative.naive_bayes import BernoulliNB as BernoulliNB
from .generative.naive_bayes import CategoricalNB as CategoricalNB
from .generative.naive_bayes import ComplementNB as ComplementNB
from .generative.naive_bayes import GaussianNB as GaussianNB
from .generative.naive_bayes import MultinomialNB as MultinomialNB
from .kernels import maps as maps
from .learner import Learner as Learner
from .learner import LearnerTraits as LearnerTraits
from .models.ensemble import EnsembleModel as EnsembleModel
from .models.kernel import KernelModel as KernelModel
from .models.linear import LinearModel as LinearModel
from .models.reference import ReferenceLearner as ReferenceLearner
from .persistence.registry import load as load
from .prototypes.kmeans import KMeans as KMeans
from .prototypes.lvq import LVQClassifier as LVQClassifier
from .prototypes.neighbors import KNNClassifier as KNNClassifier
from .scheme import losses as losses
from .scheme import schedules as schedules
from .scheme.readouts import Average as Average
from .scheme.readouts import Last as Last
from .scheme.readouts import Pocket as Pocket
from .scheme.readouts import Voted as Voted
from .scheme.rounds import Rule as Rule
from .scheme.rounds import Scalars as Scalars
from .scheme.rounds import Step as Step
from .streams import stream as stream
from .transforms.decomposition import CCIPCA as CCIPCA
from .transforms.decomposition import IncrementalPCA as IncrementalPCA
from .transforms.decomposition import OjaPCA as OjaPCA
from .transforms.dictionary import DictionaryLearning as DictionaryLearning

__version__: str

def lazily_loaded(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]: ...
