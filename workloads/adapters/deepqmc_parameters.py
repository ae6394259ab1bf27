"""Parameters of a DeepQMC 1.2.0 model, renamed for the ansatz of ours that computes the same function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusionlab.errors import unknown

ROOT = "neural_network_wave_function/~/"
GNN = ROOT + "omni_net/~/electron_gnn/~/"
CONVOLUTION = "convolution_electron_update_feature/~single_edge_type_update/"

Source = dict[str, dict[str, Any]]
"""haiku's form: module path to the arrays of that module."""


def load_parameters(source: Source, name: str) -> dict[str, Any]:
    """``source`` as the parameters of our ansatz ``name``; ``InputError`` if no such ansatz has a counterpart."""
    if name not in LOADERS:
        raise unknown("ansatz with a DeepQMC counterpart", name, LOADERS)
    return LOADERS[name](source)


def _layer(source: Source, path: str) -> dict[str, Any]:
    names = {"w": "weight", "b": "bias"}
    return {names[key]: array for key, array in source[path].items()}


def _mlp(source: Source, path: str) -> list[dict[str, Any]]:
    layers: list[dict[str, Any]] = []
    while f"{path}/linear_{len(layers)}" in source:
        layers.append(_layer(source, f"{path}/linear_{len(layers)}"))
    return layers


def _interaction_paths(source: Source) -> list[str]:
    """The module path of each message-passing layer, in order."""
    paths: list[str] = []
    while True:
        path = f"{GNN}electron_gnn_layer{f'_{len(paths)}' if paths else ''}/~/"
        if not any(module.startswith(path) for module in source):
            return paths
        paths.append(path)


def _orbitals(source: Source) -> dict[str, Any]:
    """Backflow maps and envelopes, alike in all models."""
    envelopes = source[ROOT + "exponential_envelopes"]
    return {
        "backflow": {
            "up": _layer(source, ROOT + "omni_net/~/Backflow/~/mlp/linear_0"),
            "down": _layer(source, ROOT + "omni_net/~/Backflow_1/~/mlp/linear_0"),
        },
        "envelopes": {
            spin: {"weight": envelopes[f"pi_{spin}"], "exponent": envelopes[f"zetas_{spin}"]} for spin in ("up", "down")
        },
    }


def _paulinet(source: Source) -> dict[str, Any]:
    spins = {"parallel": "same", "antiparallel": "anti"}
    interactions = []
    for path in _interaction_paths(source):
        interaction: dict[str, Any] = {
            "filter": {ours: _mlp(source, f"{path}{CONVOLUTION}w_{theirs}") for ours, theirs in spins.items()},
            "sender": {ours: _mlp(source, f"{path}{CONVOLUTION}h_{theirs}") for ours, theirs in spins.items()},
            "node": _mlp(source, path + "g"),
        }
        if pair := _mlp(source, path + "u"):
            interaction["pair"] = pair
        interactions.append(interaction)
    return {
        "interactions": interactions,
        "jastrow": _layer(source, ROOT + "omni_net/~/Jastrow/~/mlp/linear_0"),
        "determinants": source[ROOT + "conf_coeff"]["w"],
        **_orbitals(source),
    }


def _ferminet(source: Source) -> dict[str, Any]:
    interactions = []
    for path in _interaction_paths(source):
        networks = {"node": _mlp(source, path + "g"), "pair": _mlp(source, path + "u")}
        interactions.append({name: layers for name, layers in networks.items() if layers})
    return {"interactions": interactions, **_orbitals(source)}


def _psiformer(source: Source) -> dict[str, Any]:
    parts = {"query": "query", "key": "key", "value": "value", "output": "linear"}
    interactions = []
    for path in _interaction_paths(source):
        block = path + "node_attention_electron_update_feature/"
        attention = {ours: _layer(source, f"{block}multi_head_attention/{theirs}") for ours, theirs in parts.items()}
        interactions.append({"attention": attention, "dense": _mlp(source, block + "mlp")})
    cusps = source[ROOT + "electronic_cusp_asymptotic"]
    return {
        "embedding": _layer(source, GNN + "electron_embedding/linear"),
        "interactions": interactions,
        "cusps": {"parallel": cusps["same_alpha"], "antiparallel": cusps["anti_alpha"]},
        **_orbitals(source),
    }


LOADERS: dict[str, Callable[[Source], dict[str, Any]]] = {
    "paulinet": _paulinet,
    "ferminet": _ferminet,
    "psiformer-deepqmc": _psiformer,
}
