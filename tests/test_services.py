"""Calls from a package into one that depends on it."""

import inspect
import re

import pytest

from biella import Fmu, _services
from biella.scheduler.run._alone import compile_alone


def test_every_service_is_found_where_it_is_said_to_be():
    for name, module in _services._PROVIDERS.items():
        found = _services.find_service(name)
        assert found.__name__ == name and found.__module__ == f"biella.{module}"


def test_a_service_is_the_public_thing_itself():
    assert _services.find_service("Fmu") is Fmu
    assert _services.find_service("compile_alone") is compile_alone


def test_the_docstring_lists_every_service():
    text = inspect.getdoc(_services.find_service) or ""
    assert set(re.findall(r"^- ``(\w+)\(", text, re.MULTILINE)) == set(_services._PROVIDERS)


def test_no_other_name_is_a_service():
    with pytest.raises(KeyError):
        _services.find_service("simulate")
