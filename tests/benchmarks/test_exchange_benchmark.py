"""Model exchange: both participants follow the same motion, at errors that are compared."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.engine


@pytest.mark.usefixtures("c_compiler")
def test_ours_reaches_an_error_that_is_not_larger(tmp_path):
    from fmpy import read_model_description
    from studies import exchange

    path = exchange.make_fmu(tmp_path)
    expected = exchange.exact(exchange.INTERVAL * np.arange(round(exchange.STOP * 10) + 1))
    theirs = exchange.Fmpy(path, read_model_description(str(path)), 1e-4)
    error = exchange.deviation(theirs.run(), expected)
    ours, found = exchange.find_equal(path, error, expected)
    assert found <= error < 1.0
    assert exchange.deviation(ours.run(), expected) == found
