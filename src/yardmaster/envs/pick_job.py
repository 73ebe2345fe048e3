"""`yardmaster/PickJob-v0`: one environment with Gymnasium's face."""

from __future__ import annotations

from functools import partial
from typing import Any

from yardmaster.envs.episodes import Split
from yardmaster.envs.faces import Shown, SingleEnv
from yardmaster.envs.numbered import NumberedBatch, opened
from yardmaster.envs.observation import arranged, space
from yardmaster.envs.picture import picture
from yardmaster.envs.task import Task


class PickJobEnv(SingleEnv):
    """Pick the next job to start from the queue of a GPU cluster.

    ```python
    import gymnasium
    import yardmaster.envs.registration

    env = gymnasium.make("yardmaster/PickJob-v0", task="default", window=32, reward="jct")
    observation, info = env.reset(seed=0)
    while True:
        action = env.action_space.sample(info["action_mask"])
        observation, reward, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            break
    print(info["scores"])
    ```

    `gymnasium.make("yardmaster.envs.registration:yardmaster/PickJob-v0")` needs no second import.
    The first use compiles the environment, which takes up to a minute; the machine code is kept.

    ## State

    Jobs that are not submitted yet, waiting jobs, and running jobs with the GPUs they hold until
    they end; on clusters with such rules also failures, quotas, shared GPUs and power. What happens
    is in [semantics.md](semantics.md). Given a state and an action, what follows is certain: chance
    enters only through the draw of an episode's jobs (and of failures, which belong to it).

    The observation is not the whole state: jobs beyond the window, jobs to come, and what
    `information` withholds are hidden. `information="clairvoyant"` shows true run times,
    `"estimate"` the jobs' estimates, `"blind"` none.

    ## Observation

    A token of numbers for each of the first `window` waiting jobs in `window_order`, a number for
    each of `gpu_slots` GPU slots, and some numbers for the cluster as a whole: 32-bit reals.

    | `observation=` | space | shape |
    |---|---|---|
    | `"flat"` | `Box` | `(length,)`; the parts stand where `Sight.layout()` says |
    | `"dict"` | `Dict` | `jobs` `(window, features)`, `gpus` `(slots,)`, `globals` `(globals,)` |

    Parts that would be empty are left out. The tables below tell what every number means, by
    feature set (`features=`). "Unit" is the task's time unit `time_unit_s`, by default the mean run
    time of its first training episodes. `lookahead` changes what the GPU slots say and never the
    shape. Slots that tell of single GPUs are means of neighbours where GPUs are more than slots.

    ## Actions

    `Discrete(window + 1)`: action `i` starts the job of token `i` on the GPUs that `placement`
    gives it, and action `window` is the no-op, which starts nothing.

    `info["action_mask"]` (8-bit integers, 1 = legal) and `env.action_masks()` (booleans) say what
    is legal; something always is. A job is legal if it could start now. The no-op is legal when no
    job could, and otherwise, by `noop=`: `"never"`; `"when_blocked"`, if a job that fits stands
    behind one that does not; `"always"`, as long as anything is still to come. An action that is
    not legal counts as the no-op, and `invalid` counts it. With `masked=False` every action is
    legal, and starting what does not fit does nothing.

    ## Time

    When the policy is asked, and what passes between two decisions, by `pace=`:

    - `"decision"`: whenever a job of the window fits. Several jobs may start at one instant: time
      passes only when no job fits, or after a no-op.
    - `"event"`: after every single arrival or completion.
    - `"tick"`: every `tick_s` seconds.
    - `"commit"`: whenever a job waits; a chosen job that does not fit blocks all until it starts.

    A step takes `info["elapsed_s"]` simulated seconds, often 0. Discounting by seconds instead of
    by decisions needs that number. Events at one instant are handled completions first, then
    repairs and failures, then arrivals.

    ## Reward

    A weighted sum of terms, in `reward=`: a name from the table below, or weights by term such as
    `{"waiting": -1.0, "late": -2.0}`. Terms in time count in the time unit. Terms that accrue add
    up, over an episode and without discounting, to the quantity itself: rewards of `jct` sum to
    minus the mean completion time.

    ## Begin and end of an episode

    `reset` begins an episode: `jobs` jobs from the generator or trace `workload`, at the moment
    of the first decision. `terminated`: every job that can run has finished. `truncated`: second
    `time_limit_s` was reached, or the last submission plus `horizon_factor` times the work divided
    by all GPUs, or `max_steps` decisions. A cut state still has a value; learners bootstrap there.

    ## Seeding

    `reset(seed=s)` begins the first episode of a sequence that `s` determines, `reset()` the next
    one. Episodes are drawn from `episodes` numbered ones, the same on every machine;
    `reset(options={"episode": n})` begins a certain one. `split=` says from which set: `"train"`,
    `"val"` and `"report"` share nothing (seeds of their own, or disjoint parts of a trace in time).

    ## Info

    | key | type | meaning |
    |---|---|---|
    | `action_mask` | int8 `(window + 1,)` | 1 where an action is legal |
    | `now_s` | float | simulated second since the first submission |
    | `elapsed_s` | float | seconds that passed in this step; 0 after `reset` |
    | `waiting` | int | waiting jobs, those beyond the window included |
    | `episode_number` | int | which episode this is |
    | `scores` | dict | on the last step only: what came of the episode |

    The scores are `return`; means over the jobs that finished, `wait_s`, `jct_s` (completion time),
    `bounded_slowdown` and `slowdown`; `utilisation` (GPU-seconds of finished jobs by all GPUs until
    the last end) and `makespan_s`; and counts, `unfinished` jobs, `decisions` and `noops`.

    ## Many at once

    `gymnasium.make_vec("yardmaster/PickJob-v0", num_envs=1024, threads=2)` steps many environments
    in one compiled call; environment `i` is the same, step by step, as a single one reset with
    `seed + i`. An episode that ends is followed by the next within the same step
    (`AutoresetMode.SAME_STEP`): its last observation and info are in `infos["final_obs"]` and
    `infos["final_info"]`. `copy=False` hands out the arrays that the next step writes to.

    ## Version

    `v0`. The number goes up when the same actions would mean something else. What the numbers of an
    observation mean has a version of its own, `SCHEMA` in `engine.picking.sight`, which is kept
    with every trained policy.
    """

    batch: NumberedBatch

    def __init__(
        self,
        *,
        task: str | Task = "default",
        split: Split = "train",
        observation: str = "flat",
        compiled: bool = True,
        render_mode: str | None = None,
        **changes: Any,
    ) -> None:
        """Open the environment.

        Args:
            task: a name of `TASKS`, or a task.
            split: which of its sets of episodes: train, val or report.
            observation: flat or dict.
            compiled: False runs the same functions as plain Python: slow, and easy to step through.
            render_mode: None or ansi.
            **changes: settings of the task to change, by name; see `Task` and `Sight`.

        Raises:
            UnknownNameError: if a name or a setting is unknown.
        """
        batch = opened(task, changes, split, size=1, compiled=compiled)
        super().__init__(shown(batch, observation), render_mode)


def shown(batch: NumberedBatch, kind: str) -> Shown:
    """Return environments of picking jobs as Gymnasium shows them, flat or as a dictionary."""
    return Shown(
        batch,
        space(batch.task, kind),
        partial(arranged, layout=batch.layout, kind=kind),
        partial(picture, batch),
    )
