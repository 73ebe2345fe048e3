"""The forward pass in the core, compiled and plain, against a textbook one in NumPy."""

import numpy as np
import pytest

from yardmaster.engine.picking import compilation, nets
from yardmaster.engine.picking.layout import Layout
from yardmaster.schedulers.learned.packing import pack
from yardmaster.schedulers.learned.policy_file import PolicyFile

LAYOUTS = {
    "all parts": Layout(11, ("a", "b", "c"), 9, ("g", "h"), 1, 34, (0, 43)),
    "two chunks": Layout(20, ("a", "b"), 3, ("g",), 0, 40, (43,)),
    "no globals": Layout(5, ("a",), 2, (), 0, 5, ()),
    "jobs only": Layout(5, tuple("abcdefghi"), 0, (), 0, 45, ()),
}
HEADS = ["policy", "deep head", "atoms", "dueling atoms"]
ARCHITECTURES = ["mlp", "kernel", "self-attention", "cross-attention"]
CASES = [
    pytest.param(arch, name, head, id=f"{arch}, {name}, {head}")
    for arch in ARCHITECTURES
    for name, layout in LAYOUTS.items()
    for head in HEADS
    if layout.gpu_slots or arch != "cross-attention"
]
DIM, ATOMS = 6, 5


def random_policy(arch: str, layout: Layout, head: str, seed: int) -> PolicyFile:
    """Return a policy with weights that nobody trained."""
    dice = np.random.default_rng(seed)
    weights: dict[str, np.ndarray] = {}

    def put(name, *shape):
        weights[name] = (dice.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)

    def chain(name, *sizes):
        for place in range(len(sizes) - 1):
            put(f"{name}.{place}.weight", sizes[place], sizes[place + 1])
            put(f"{name}.{place}.bias", sizes[place + 1])

    def flat(name, inputs, units):
        put(f"{name}.weight", inputs, units)
        put(f"{name}.bias", units)

    features, number = len(layout.job_features), len(layout.global_features)
    if arch == "mlp":
        chain("hidden", layout.length, 12, 7)
    else:
        put("noop_bias", ATOMS if "atoms" in head else 1)
    if "attention" in arch:
        chain("job", features, DIM, DIM)
        for name in ("query", "key", "value", "out"):
            flat(name, DIM, DIM)
        for name in ("norm", "last_norm"):
            put(f"{name}.scale", DIM)
            put(f"{name}.shift", DIM)
    if arch == "cross-attention":
        chain("gpu", 1, DIM, DIM)
        chain("globals", number, DIM, DIM)
        flat("add_globals", DIM, DIM)
    elif arch != "mlp":
        put("noop", DIM if "attention" in arch else 10)
        put("token.weight", DIM if "attention" in arch else features, 10)
        flat("context", number + layout.gpu_slots, 10)
        chain("hidden", 10, 7)
    width = DIM if arch == "cross-attention" else 7
    outputs = ATOMS if "atoms" in head else 1
    each = outputs * (layout.actions if arch == "mlp" else 1)
    chain("head", width, *([4] if head in {"deep head", "dueling atoms"} else []), each)
    if outputs > 1:
        weights["support"] = np.linspace(-2.0, 3.0, ATOMS, dtype=np.float32)
    if head == "dueling atoms":
        chain("state", width, 3, ATOMS)
    if not number:
        weights = {name: array for name, array in weights.items() if "globals" not in name}
    return PolicyFile(arch, layout, {}, weights)


class Textbook:
    """The same networks, one matrix at a time and in 64 bits."""

    def __init__(self, policy: PolicyFile) -> None:
        self.policy, self.layout = policy, policy.layout
        self.w = {name: array.astype(np.float64) for name, array in policy.weights.items()}

    def linear(self, name, x):
        """Apply one layer."""
        return x @ self.w[f"{name}.weight"] + self.w[f"{name}.bias"]

    def chain(self, name, x, *, ends_linear):
        """Apply all layers of a name, with ReLU between them."""
        count = sum(key.startswith(f"{name}.") and key.endswith(".bias") for key in self.w)
        for place in range(count):
            x = self.linear(f"{name}.{place}", x)
            x = x if ends_linear and place == count - 1 else np.maximum(x, 0.0)
        return x

    def norm(self, name, x):
        """Normalise every row."""
        spread = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
        centred = (x - x.mean(axis=-1, keepdims=True)) / spread
        return centred * self.w[f"{name}.scale"] + self.w[f"{name}.shift"]

    def attend(self, tokens, others):
        """Let tokens look at others."""
        likeness = self.linear("query", tokens) @ self.linear("key", others).T / np.sqrt(DIM)
        shares = softmax(likeness)
        return self.norm("norm", tokens + self.linear("out", shares @ self.linear("value", others)))

    def embeddings(self, seen):
        """Return an embedding per action."""
        jobs, gpus = self.layout.jobs(seen), self.layout.gpus(seen)
        state = self.layout.globals(seen)
        is_job = (jobs != 0).any(axis=1)
        arch = self.policy.architecture
        if arch == "cross-attention":
            return self.among_gpus(jobs, is_job, gpus, state)
        if arch == "kernel":
            first = np.vstack([jobs @ self.w["token.weight"], self.w["noop"]])
        else:
            tokens = np.vstack([self.chain("job", jobs, ends_linear=True), self.w["noop"]])
            tokens = self.attend(tokens, tokens[np.append(is_job, True)])
            first = tokens @ self.w["token.weight"]
        first = first + self.linear("context", np.concatenate([state, gpus]))
        return self.chain("hidden", np.maximum(first, 0.0), ends_linear=False)

    def among_gpus(self, jobs, is_job, gpus, state):
        """Return those of jobs that look at GPU slots."""
        jobs = self.chain("job", jobs, ends_linear=True)
        gpus = self.chain("gpu", gpus[:, None], ends_linear=True)
        pools = [jobs[is_job].mean(axis=0) if is_job.any() else np.zeros(DIM), gpus.mean(axis=0)]
        added = 0.0
        if len(state):
            pools.append(self.chain("globals", state, ends_linear=True))
            added = self.linear("add_globals", pools[-1])
        tokens = self.attend(np.vstack([jobs, np.mean(pools, axis=0)]), gpus)
        return self.norm("last_norm", tokens + added)

    def scores(self, seen, legal):
        """Return the score of every action, legal or not."""
        seen = seen.astype(np.float64)
        if self.policy.architecture == "mlp":
            state = self.chain("hidden", seen, ends_linear=False)
            numbers = self.chain("head", state, ends_linear=True).reshape(self.layout.actions, -1)
        else:
            embeddings = self.embeddings(seen)
            counted = np.append((self.layout.jobs(seen) != 0).any(axis=1), True)
            state = embeddings[counted].mean(axis=0)
            numbers = self.chain("head", embeddings, ends_linear=True)
            numbers[-1] += self.w["noop_bias"]
        if "support" not in self.w:
            return numbers[:, 0]
        if "state.0.bias" in self.w:
            numbers = numbers - numbers[legal].mean(axis=0)
            numbers = numbers + self.chain("state", state, ends_linear=True)
        return softmax(numbers) @ self.w["support"]


def softmax(numbers):
    shares = np.exp(numbers - numbers.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def situation(layout: Layout, seed: int):
    """Return an observation with some empty tokens, and some legal actions."""
    dice = np.random.default_rng(seed)
    seen = dice.normal(size=layout.length).astype(np.float32)
    layout.jobs(seen)[dice.random(layout.window) < 0.4] = 0.0
    if seed == 0:
        layout.jobs(seen)[:] = 0.0
    legal = dice.random(layout.actions) < [0.0, 0.3, 1.0][seed % 3]
    legal[dice.integers(layout.actions)] = True
    return seen, legal


def scores_of(score_one, packed, seen, legal, scratch=None):
    scratch = np.zeros(packed.scratch_length, np.float32) if scratch is None else scratch
    scores = np.zeros(len(legal), np.float32)
    score_one(packed.net, packed.weights, seen, legal.astype(np.int8), scores, scratch)
    return scores


@pytest.fixture(scope="module")
def compiled():
    return compilation.compiled().score_one


@pytest.mark.parametrize(("arch", "name", "head"), CASES)
def test_compiled_scores_are_the_textbooks(compiled, arch, name, head):
    """Legal actions have the textbook's scores and the same best one; all others have −inf."""
    layout = LAYOUTS[name]
    policy = random_policy(arch, layout, head, seed=len(arch))
    packed, textbook = pack(policy), Textbook(policy)
    scratch = np.zeros(packed.scratch_length, np.float32)
    for seed in range(12):
        seen, legal = situation(layout, seed)
        found = scores_of(compiled, packed, seen, legal, scratch)
        expected = textbook.scores(seen, legal)
        np.testing.assert_allclose(found[legal], expected[legal], rtol=2e-4, atol=2e-5)
        assert (found[~legal] == -np.inf).all()
        best = np.sort(expected[legal])[::-1]
        if len(best) == 1 or best[0] - best[1] > 1e-4:
            assert found.argmax() == np.flatnonzero(legal)[expected[legal].argmax()]


@pytest.mark.parametrize(
    ("arch", "head"), [(arch, head) for arch in ARCHITECTURES for head in HEADS]
)
def test_plain_python_gives_the_same(compiled, arch, head):
    """Uncompiled, the same code gives the same scores, to the last bits of exponentials."""
    layout = LAYOUTS["all parts"]
    packed = pack(random_policy(arch, layout, head, seed=1))
    for seed in (1, 3):
        seen, legal = situation(layout, seed)
        found = scores_of(nets.score_one, packed, seen, legal)
        expected = scores_of(compiled, packed, seen, legal)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        if arch in {"mlp", "kernel"} and "atoms" not in head:
            assert np.array_equal(found, expected)


@pytest.mark.parametrize("arch", ["mlp", "kernel"])
def test_jobs_are_scored_alike_whichever_others_are_legal(compiled, arch):
    """Side by side, read where they stand, or with gaps, copied: the same to the last bit."""
    layout = LAYOUTS["two chunks"]
    packed = pack(random_policy(arch, layout, "policy", seed=4))
    seen, _ = situation(layout, 5)
    everything = scores_of(compiled, packed, seen, np.ones(layout.actions, np.bool_))
    for step, first in ((2, 0), (3, 1), (1, 16), (1, 3)):
        legal = np.zeros(layout.actions, np.bool_)
        legal[first::step] = True
        found = scores_of(compiled, packed, seen, legal)
        assert np.array_equal(found[legal], everything[legal])


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_decision_leaves_no_trace(compiled, arch):
    """Scores do not depend on what the scratch row was used for before, not even for NaN."""
    layout = LAYOUTS["all parts"]
    packed = pack(random_policy(arch, layout, "dueling atoms", seed=2))
    scratch = np.zeros(packed.scratch_length, np.float32)
    spoilt = np.full(layout.length, np.nan, np.float32)
    scores_of(compiled, packed, spoilt, np.ones(layout.actions, np.bool_), scratch)
    for seed in range(4):
        seen, legal = situation(layout, seed)
        again = scores_of(compiled, packed, seen, legal, scratch)
        assert np.array_equal(again, scores_of(compiled, packed, seen, legal))


def test_scores_stay_within_their_rows(compiled):
    """Nothing is written beyond the scores or the scratch row, and nothing else is changed."""
    layout = LAYOUTS["two chunks"]
    for arch in ARCHITECTURES:
        packed = pack(random_policy(arch, layout, "dueling atoms", seed=3))
        seen, _ = situation(layout, 5)
        legal = np.ones(layout.actions, np.int8)
        scores = np.full(layout.actions + 8, 7.0, np.float32)
        scratch = np.full(packed.scratch_length + 64, 7.0, np.float32)
        scratch[: packed.scratch_length] = 0.0
        before = [array.copy() for array in (packed.net, packed.weights, seen, legal)]
        compiled(packed.net, packed.weights, seen, legal, scores, scratch)
        assert (scores[layout.actions :] == 7.0).all()
        assert (scratch[packed.scratch_length :] == 7.0).all()
        after = (packed.net, packed.weights, seen, legal)
        assert all(np.array_equal(old, new) for old, new in zip(before, after, strict=True))
