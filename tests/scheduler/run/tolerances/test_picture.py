"""Pictures of tolerance studies: what they show, and what is refused."""

import numpy as np
import pytest

from biella.errors import BiellaError
from biella.tolerances import Normal, tolerance_study


def test_a_picture_has_histograms_and_contributions(tmp_path):
    variables = {f"x{k}": Normal(0.0, 0.1 * (k + 1)) for k in range(12)}
    study = tolerance_study(
        lambda x: {"sum": sum(x.values()), "first": x["x0"]},
        variables,
        200,
        limits={"sum": (-1, 1)},
    )
    figure = study.plot(path=tmp_path / "study.png")
    assert (tmp_path / "study.png").stat().st_size > 10_000
    (left, right), _ = np.array(figure.axes).reshape(2, 2)
    lines = {line.get_label() for line in left.lines}
    assert {"worst case, ±7.8", "RSS, ±2.55", "limits"} <= lines
    labels = [label.get_text() for label in right.get_yticklabels()]
    assert labels == [*(f"x{k}" for k in range(11, 1, -1)), "2 others, each at most"]
    widths = [bar.get_width() for bar in right.patches]
    np.testing.assert_allclose(widths, [*np.arange(12, 2, -1) / 10, 0.2])
    assert len(study.plot("first").axes) == 2


def test_what_cannot_be_drawn_is_refused(tmp_path):
    study = tolerance_study(lambda x: {"y": [1.0, x["a"]]}, {"a": Normal(0.0, 1.0)}, 5)
    with pytest.raises(BiellaError, match="is an array"):
        study.plot()
    with pytest.raises(BiellaError, match=r"\.pdg"):
        tolerance_study(lambda x: x["a"], {"a": Normal(0.0, 1.0)}, 5).plot(path=tmp_path / "a.pdg")
