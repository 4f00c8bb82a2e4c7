"""What a package asks of one built on it is found where `services` says."""

import inspect

import pytest

from biella import _services as services


@pytest.mark.parametrize("name", services._PROVIDERS)
def test_every_service_is_provided(name):
    found = services.find_service(name)
    assert found.__name__ == name
    module = inspect.getmodule(found)
    assert module and module.__name__ == f"biella.{services._PROVIDERS[name]}"
    assert f"``{name}(" in (services.find_service.__doc__ or "")
