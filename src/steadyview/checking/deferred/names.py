"""The six properties of Beyer et al., section 3, by name, in their order."""

from __future__ import annotations

from typing import Final

LOST: Final = "lost"
REDUNDANT: Final = "redundant"
IN_A_VIEW: Final = "not atomic in a view"
ACROSS_VIEWS: Final = "not atomic across views"
REORDERED: Final = "reordered"
REAL_TIME: Final = "real time"
