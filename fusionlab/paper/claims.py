"""All claims of the characterisation that this project looks at, in its order."""

from __future__ import annotations

from fusionlab.paper import claims_of_figure_4, claims_of_figure_5, claims_of_figure_6
from fusionlab.paper.claim import Claim

CLAIMS: tuple[Claim, ...] = (*claims_of_figure_4.CLAIMS, *claims_of_figure_5.CLAIMS, *claims_of_figure_6.CLAIMS)
