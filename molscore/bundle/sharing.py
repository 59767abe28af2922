"""The graph of a DMPNN that computes what is equal once; see `molscore.chem.surroundings`.

It is put together from the configuration of a model and takes the weights of an expert as the
skeleton of its bundle does. What a bundle says holds: an engine runs both on made-up molecules
first and keeps to the skeleton where they disagree.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from molscore.bundle.signature import IR_VERSION, OPSET, OUTPUT, WEIGHTS_LOCATION
from molscore.bundle.tensors import Arrays
from molscore.chem.features import ATOM_FEATURES, BOND_FEATURES, Feature
from molscore.chem.packed import GraphArrays
from molscore.chem.surroundings import Sums, Surroundings
from molscore.nn.activation import SLOPE
from molscore.nn.config import ModelConfig
from molscore.score.plan import MAX_SCALE, DepthPlan, Stage

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto, ValueInfoProto

_FLOAT: Final = 1  # onnx.TensorProto.FLOAT
_INT: Final = 7


def n_rounds(model: ModelConfig) -> int | None:
    """Return how many rounds of messages a model has, or None where this graph cannot be its."""
    plan = DepthPlan.parse(model.plan)
    fits = (
        (model.block, model.integrator, model.readout) == ("dmpnn", "euler", "virtual-node")
        and (model.descriptors, model.head_plan, model.blend) == ("none", "none", False)
        and all(not stage.additive and stage.dt != "learned" for stage in plan.stages)
    )
    return plan.n_applications if fits else None


def sharing_graph(model: ModelConfig, weights: Arrays) -> bytes:
    """Return the graph of an expert, its weights external under their state-dict names.

    Args:
        model: one for which `n_rounds` is a number.
        weights: those of any expert, for their shapes.
    """
    from onnx import helper  # noqa: PLC0415 (start-up)

    graph = _Graph(weights, model.width)
    state, first, unit = graph.begin(), "first", 1.0
    plan = DepthPlan.parse(model.plan)
    round_ = 0
    for s, stage in enumerate(plan.stages):
        dt = _step(stage, plan)
        for b in range(stage.blocks):
            linear = f"depth.stages.{s}.blocks.{b}.linear"
            prepared = graph.add("Add", [first, f"{linear}.bias"], f"{linear}/first")
            for _ in range(stage.steps):
                state, unit = graph.step(round_, state, prepared, f"{linear}.weight", dt, unit)
                round_ += 1
    rows = graph.atoms(state, unit)
    node = graph.read_out(rows, model.readout_steps)
    graph.head(node)
    made = helper.make_model(
        helper.make_graph(
            graph.nodes, "sharing expert", graph.inputs, [graph.output()], graph.initializers()
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    raw: bytes = made.SerializeToString(deterministic=True)
    return raw


def sharing_inputs(shared: Surroundings, batch: GraphArrays, width: int) -> dict[str, Any]:
    """Return what the graph is fed."""
    feed: dict[str, NDArray[Any]] = {
        "start_atoms": _one_hot(shared.atom_codes, ATOM_FEATURES),
        "start_bonds": _one_hot(shared.bond_codes, BOND_FEATURES),
        "kinds": _one_hot(shared.kind_codes, ATOM_FEATURES),
        "kind": shared.kind,
        "atom": shared.atom,
        "owner": batch.graph_id,
        "owner_column": batch.graph_id[:, None],
        "graphs": np.array([len(batch.n_atoms), width]),
        "graphs_column": np.array([len(batch.n_atoms), 1]),
    }
    for i, one in enumerate(shared.rounds):
        feed |= {f"own{i}": one.own, f"first{i}": one.first}
        feed |= _fed(str(i), one.messages, len(one.own), width)
    return feed | _fed("_out", shared.into, len(shared.kind), width)


def _fed(name: str, sums: Sums, n: int, width: int) -> dict[str, NDArray[Any]]:
    return {
        f"rows{name}": sums.rows,
        f"into{name}": sums.owner[:, None],
        f"shape{name}": np.array([n, width]),
    }


def _one_hot(codes: NDArray[np.int64], features: Sequence[Feature]) -> NDArray[np.float32]:
    sizes = [len(feature.labels) for feature in features]
    offset = np.cumsum([0, *sizes[:-1]])
    hot = np.zeros((len(codes), sum(sizes)), dtype=np.float32)
    np.put_along_axis(hot, codes + offset, 1.0, axis=1)
    return hot


def _step(stage: Stage, plan: DepthPlan) -> float:
    return 1.0 / plan.n_applications if stage.dt == "1/K" else float(stage.dt)


class _Graph:
    """Nodes, inputs and weights while the graph is put together."""

    def __init__(self, weights: Arrays, width: int) -> None:
        self.nodes: list[NodeProto] = []
        self.inputs: list[ValueInfoProto] = []
        self._constants: list[TensorProto] = []
        self._weights, self._width = weights, width

    def add(self, op: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        from onnx.helper import make_node  # noqa: PLC0415

        self.nodes.append(make_node(op, list(inputs), [output], **attributes))
        return output

    def take(self, name: str, *shape: int | str, dtype: int = _INT) -> str:
        """Declare an input."""
        from onnx.helper import make_tensor_value_info  # noqa: PLC0415

        self.inputs.append(make_tensor_value_info(name, dtype, list(shape)))
        return name

    def output(self) -> "ValueInfoProto":
        from onnx.helper import make_tensor_value_info  # noqa: PLC0415

        n_targets = self._weights["head.shift"].shape[0]
        return make_tensor_value_info(OUTPUT, _FLOAT, ["n_graphs", n_targets])

    def initializers(self) -> "list[TensorProto]":
        """The weights that are used, as external initialisers, and the constants."""
        from onnx import TensorProto  # noqa: PLC0415

        used = {name for node in self.nodes for name in node.input}
        tensors = []
        for name in sorted(used & set(self._weights)):
            tensor = TensorProto(
                name=name,
                data_type=_FLOAT,
                dims=self._weights[name].shape,
                data_location=TensorProto.EXTERNAL,
            )
            tensor.external_data.add(key="location", value=WEIGHTS_LOCATION)
            tensors.append(tensor)
        return [*self._constants, *tensors]

    def begin(self) -> str:
        """h0 = act(A x + B b), of the classes at the start."""
        sizes = [
            sum(len(f.labels) for f in features) for features in (ATOM_FEATURES, BOND_FEATURES)
        ]
        for name, size in zip(("start_atoms", "start_bonds"), sizes, strict=True):
            self.take(name, "n_start", size, dtype=_FLOAT)
        x = self.add("MatMul", ["start_atoms", "family.atom_in.weight"], "start_x")
        b = self.add("MatMul", ["start_bonds", "family.bond_in.weight"], "start_b")
        z = self.add("Add", [x, b], "start_z")
        return self.add("LeakyRelu", [z], "first", alpha=SLOPE)

    def _sum(self, state: str, name: str) -> str:
        """Add up rows of the states of the round before."""
        self.take(f"rows{name}", f"n_pairs{name}")
        self.take(f"into{name}", f"n_pairs{name}", 1)
        self.take(f"shape{name}", 2)
        rows = self.add("Gather", [state, f"rows{name}"], f"pairs{name}")
        zeros = self._filled(f"shape{name}", f"zeros{name}", 0.0)
        return self.add("ScatterND", [zeros, f"into{name}", rows], f"sum{name}", reduction="add")

    def _filled(self, shape: str, output: str, value: float) -> str:
        from onnx.numpy_helper import from_array  # noqa: PLC0415

        filling = from_array(np.array([value], dtype=np.float32))
        return self.add("ConstantOfShape", [shape], output, value=filling)

    def step(
        self, i: int, state: str, first: str, weight: str, dt: float, unit: float
    ) -> tuple[str, float]:
        """One step of Euler: h <- (1 - dt) h + dt act(h0 + W m); the state is h = unit * g.

        The factors go where they cost no pass over memory, as in `StageRunner.run_scaled`.
        """
        self.take(f"own{i}", f"n_after{i}")
        self.take(f"first{i}", f"n_after{i}")
        scale = 1.0 if dt == 1.0 else dt / (1.0 - dt) / unit
        if scale > MAX_SCALE:
            state, unit = self._times(state, unit, f"state{i}/whole"), 1.0
            scale = dt / (1.0 - dt)
        again = self.add("Gather", [first, f"first{i}"], f"first{i}/z")
        z = self.add(
            "Gemm",
            [self._sum(state, str(i)), weight, again],
            f"z{i}",
            transB=1,
            alpha=scale * unit,
            beta=scale,
        )
        f = self.add("LeakyRelu", [z], f"f{i}", alpha=SLOPE)
        if dt == 1.0:
            return f, 1.0
        own = self.add("Gather", [state, f"own{i}"], f"own{i}/g")
        return self.add("Add", [own, f], f"state{i}"), unit * (1.0 - dt)

    def _times(self, x: str, factor: float, output: str) -> str:
        from onnx.numpy_helper import from_array  # noqa: PLC0415

        if factor == 1.0:
            return x
        name = f"{output}/factor"
        self._constants.append(from_array(np.array(factor, dtype=np.float32), name))
        return self.add("Mul", [x, name], output)

    def atoms(self, state: str, unit: float) -> str:
        """Return the rows act(C x + W sum of h) of the classes of atoms."""
        self.take("kinds", "n_kinds", sum(len(f.labels) for f in ATOM_FEATURES), dtype=_FLOAT)
        self.take("kind", "n_classes")
        x = self.add("MatMul", ["kinds", "family.atom_out.weight"], "kinds_x")
        x = self.add("Add", [x, "family.out.bias"], "kinds_z")
        x = self.add("Gather", [x, "kind"], "classes_x")
        total = self._sum(state, "_out")
        z = self.add("Gemm", [total, "family.out.weight", x], "rows_z", transB=1, alpha=unit)
        return self.add("LeakyRelu", [z], "rows", alpha=SLOPE)

    def read_out(self, classes: str, steps: int) -> str:
        """The virtual node over all atoms; see `molscore.nn.readout.VirtualNode`."""
        self.take("atom", "n_atoms")
        self.take("owner", "n_atoms")
        self.take("owner_column", "n_atoms", 1)
        self.take("graphs", 2)
        self.take("graphs_column", 2)
        scores = {}
        for name in ("row", "node"):
            vector = [f"readout.score_{name}.weight", "readout.project.weight"]
            flat = self.add("MatMul", vector, f"score_{name}/flat")
            scores[name] = self.add("Transpose", [flat], f"score_{name}", perm=[1, 0])
        rows = self.add("Gather", [classes, "atom"], "atom_rows")
        of_class = self.add("MatMul", [classes, scores["row"]], "class_scores")
        row_score = self.add("Gather", [of_class, "atom"], "row_scores")
        none = self._filled("graphs", "no_rows", 0.0)
        no_weight = self._filled("graphs_column", "no_weight", 0.0)
        lowest = self._filled("graphs_column", "lowest", -np.inf)
        total = self.add("ScatterND", [none, "owner_column", rows], "total", reduction="add")
        node = self.add("Relu", [total], "node")
        for s in range(steps):
            at = f"read{s}"
            of_node = self.add("MatMul", [node, scores["node"]], f"{at}/node")
            of_node = self.add("Gather", [of_node, "owner"], f"{at}/of_node")
            score = self.add("Add", [row_score, of_node], f"{at}/sum")
            score = self.add("LeakyRelu", [score], f"{at}/score", alpha=SLOPE)
            highest = [lowest, "owner_column", score]
            top = self.add("ScatterND", highest, f"{at}/top", reduction="max")
            shift = self.add("Gather", [top, "owner"], f"{at}/shift")
            e = self.add("Exp", [self.add("Sub", [score, shift], f"{at}/down")], f"{at}/e")
            weighted = self.add("Mul", [rows, e], f"{at}/weighted")
            mixed = [none, "owner_column", weighted]
            share = [no_weight, "owner_column", e]
            node = self._attend(
                node,
                self.add("ScatterND", mixed, f"{at}/mixed", reduction="add"),
                self.add("ScatterND", share, f"{at}/share", reduction="add"),
                at,
            )
        return node

    def _attend(self, node: str, mixed: str, share: str, at: str) -> str:
        """The new node: relu(GRU(elu(P mean + bias), node))."""
        mean = self.add("Div", [mixed, share], f"{at}/mean")
        projected = [mean, "readout.project.weight", "readout.bias"]
        c = self.add("Elu", [self.add("Gemm", projected, f"{at}/p", transB=1)], f"{at}/c")
        parts = {}
        for kind, x in (("ih", c), ("hh", node)):
            gates = [x, f"readout.gru.weight_{kind}", f"readout.gru.bias_{kind}"]
            name = self.add("Gemm", gates, f"{at}/{kind}", transB=1)
            parts[kind] = [f"{at}/{kind}/{gate}" for gate in "rzn"]
            self._split(name, parts[kind])
        (ir, iz, in_), (hr, hz, hn) = parts["ih"], parts["hh"]
        r = self.add("Sigmoid", [self.add("Add", [ir, hr], f"{at}/ar")], f"{at}/r")
        z = self.add("Sigmoid", [self.add("Add", [iz, hz], f"{at}/az")], f"{at}/z")
        n = self.add("Add", [in_, self.add("Mul", [r, hn], f"{at}/rh")], f"{at}/an")
        n = self.add("Tanh", [n], f"{at}/n")
        kept = self.add("Mul", [z, self.add("Sub", [node, n], f"{at}/left")], f"{at}/kept")
        return self.add("Relu", [self.add("Add", [n, kept], f"{at}/new")], f"{at}/end")

    def _split(self, name: str, outputs: list[str]) -> None:
        from onnx.helper import make_node  # noqa: PLC0415
        from onnx.numpy_helper import from_array  # noqa: PLC0415

        sizes = f"{name}/sizes"
        self._constants.append(from_array(np.full(3, self._width, dtype=np.int64), sizes))
        self.nodes.append(make_node("Split", [name, sizes], outputs, axis=1))

    def head(self, node: str) -> None:
        """End with shift + scale * (V act(U m))."""
        hidden = [node, "head.hidden.weight", "head.hidden.bias"]
        z = self.add(
            "LeakyRelu", [self.add("Gemm", hidden, "hidden", transB=1)], "act", alpha=SLOPE
        )
        out = self.add("Gemm", [z, "head.out.weight", "head.out.bias"], "standardised", transB=1)
        scaled = self.add("Mul", [out, "head.scale"], "scaled")
        self.add("Add", [scaled, "head.shift"], OUTPUT)
