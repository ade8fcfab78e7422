from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import pytest
from pydantic import BaseModel

from ragpilot.bootstrap.chat_models import CHAT_MODELS
from ragpilot.bootstrap.embedders import EMBEDDERS, WITHOUT
from ragpilot.bootstrap.stores import STORES
from ragpilot.config import ChatSettings, EmbedderSettings, StoreSettings


@pytest.mark.parametrize(
    ("registry", "settings"),
    [(STORES, StoreSettings), (EMBEDDERS, EmbedderSettings), (CHAT_MODELS, ChatSettings)],
    ids=["stores", "embedders", "chat models"],
)
def test_every_kind_that_can_be_configured_is_made(registry: Mapping[str, object], settings: type[BaseModel]) -> None:
    assert set(registry) == set(get_args(settings.model_fields["kind"].annotation))


def test_what_a_kind_does_not_read_is_a_setting() -> None:
    assert WITHOUT.keys() <= EMBEDDERS.keys()
    assert {name for names in WITHOUT.values() for name in names} <= EmbedderSettings.model_fields.keys()
