"""Step through a rule on a small stream and see its decision boundary move, as on a blackboard.

>>> from onepass.play import play
>>> rounds = play("pa", "A", fit_intercept=False)
>>> print(rounds.frames[2].title)
round 3: mistake, loss 1.8, add 0.9
>>> rounds.frames[2].after.w.round(6).tolist()
[0.7, -0.3]

`print(rounds)` draws every round in the terminal with the numbers one would compute by hand; `svg_strip`, `png`
and `gif` draw them to a file. The rounds are those of `ReferenceLearner`. A picture shows the weights that the rule
updates: the boundary before the round dashed, after it solid, s = ±1 dotted, and w as an arrow from the origin. Shaded
regions show what the readout's weights predict.
"""

from __future__ import annotations

from .frames import Frame, Weights
from .geometry import Line, Region
from .rounds import Play, play
from .streams import STREAMS

__all__ = ["STREAMS", "Frame", "Line", "Play", "Region", "Weights", "play"]
