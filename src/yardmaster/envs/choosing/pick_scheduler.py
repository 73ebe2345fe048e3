"""`yardmaster/PickScheduler-v0`: one environment of choosing with Gymnasium's face."""

from __future__ import annotations

from functools import partial
from typing import Any

from yardmaster.envs.choosing.numbered import NumberedChoosing, opened_choosing
from yardmaster.envs.choosing.observation import arranged, space
from yardmaster.envs.choosing.task import ChoosingTask
from yardmaster.envs.episodes import Split
from yardmaster.envs.faces import Shown, SingleEnv


class PickSchedulerEnv(SingleEnv):
    """Choose, again and again, which scheduler runs a GPU cluster.

    ```python
    import gymnasium
    import yardmaster.envs.registration

    env = gymnasium.make("yardmaster/PickScheduler-v0", task="regimes", reward="jct")
    observation, info = env.reset(seed=0)
    while True:
        action = env.action_space.sample()
        observation, reward, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            break
    print(info["scores"])
    ```

    `gymnasium.make("yardmaster.envs.registration:yardmaster/PickScheduler-v0")` needs no second
    import. The first use compiles the environment, which takes up to a minute; the machine code is
    kept.

    ## State

    Jobs that are not submitted yet, waiting jobs, running jobs with the GPUs they hold until they
    end, and the scheduler at work; on clusters with such rules also nodes that are away. What
    happens is in [semantics.md](semantics.md). Given a state and an action, what follows is
    certain: chance enters only through the draw of an episode's regime and jobs.

    The observation is not the whole state: it counts jobs and shows none of them, jobs to come are
    hidden, and nobody says which regime it is unless `labelled=True`. `information="clairvoyant"`
    shows true run times, `"estimate"` the jobs' estimates, `"blind"` none; the schedulers of the
    menu read the same ones, if any.

    ## Observation

    Numbers of now (the queue, how long jobs have waited, how close their deadlines are, when GPUs
    will be free, which scheduler is at work), then of the recent past in `past` spans of
    `past_span` time units, the newest first: 32-bit reals between 0 and 1, or −1 and 1 where things
    can be opposite.

    | `observation=` | space | shape |
    |---|---|---|
    | `"flat"` | `Box` | `(length,)`; the names of all numbers are in `ChoiceSight.layout()` |
    | `"dict"` | `Dict` | `now` `(numbers,)`, `past` `(spans, numbers)` unless `past=0` |

    The tables below tell what every number means. "Unit" is the task's time unit `time_unit_s`, by
    default the mean run time of its regimes. How long a look takes does not depend on how many jobs
    wait.

    ## Actions

    `Discrete(len(menu))`: action `i` puts the scheduler `menu[i]` to work, and all jobs that start
    until the next decision are its choice. Running jobs are left alone. A menu holds schedulers of
    the scheduler language under the disciplines strict, skip, commit and easy, with any placement
    but milp. To keep to one action is to run that scheduler: the schedule is the same, job by job.

    Every action is always legal: `info["action_mask"]` (8-bit integers) and `env.action_masks()`
    (booleans) are all ones, for learners that ask.

    ## Time

    The chooser is asked when the first job comes, and from then on at every arrival, completion,
    failure or repair at which at least two jobs wait and a GPU is free, but not before `every_s`
    seconds have passed since the last decision. A step takes `info["elapsed_s"]` simulated
    seconds; discounting by seconds instead of by decisions needs that number. Events at one instant
    are handled completions first, then repairs and failures, then arrivals.

    ## Reward

    A weighted sum of terms, in `reward=`: a name from the table below, or weights by term such as
    `{"in_system": -1.0, "late": -2.0}`. Terms accrue as time passes and count by what the best
    scheduler of the menu, kept all the time, makes of the same jobs, so that all regimes count
    alike. What the scheduler of the menu with the highest return earns in the same span of time is
    taken off: over an episode, without discounting, keeping to that scheduler earns 0, rewards of
    `jct` sum to minus the share by which the mean completion time lies above its, and anything
    above 0 is better than every scheduler of the menu.

    ## Begin and end of an episode

    `reset` begins an episode: the jobs of a regime, at the first submission. Episodes go through
    the regimes of `families` (or those that `regimes` names) in turn, so that each has as many as
    any other; half of the training episodes are disturbed (`randomised`). `terminated`: every job
    that can run has finished. `truncated`: `max_steps` decisions were made, or what waits can never
    start. A cut state still has a value; learners bootstrap there.

    ## Seeding

    `reset(seed=s)` begins the first episode of a sequence that `s` determines, `reset()` the next
    one. Episodes are drawn from `episodes` numbered ones, the same on every machine;
    `reset(options={"episode": n})` begins a certain one. `split=` says from which set: `"train"`,
    `"val"` and `"report"` share no seed.

    ## Info

    | key | type | meaning |
    |---|---|---|
    | `action_mask` | int8 `(len(menu),)` | all ones |
    | `now_s` | float | simulated second since the first submission |
    | `elapsed_s` | float | seconds that passed in this step; 0 after `reset` |
    | `waiting` | int | waiting jobs |
    | `episode_number` | int | which episode this is |
    | `regime` | int | place of its regime among the task's; not for the chooser |
    | `scores` | dict | on the last step only: what came of the episode |

    The scores are `return` and `decisions`; over the jobs that finished the means `jct_s`
    (completion time), `wait_s` and `bounded_slowdown` and the 95th percentile `p95_jct_s`; `late`,
    the share of jobs that finished after their deadline or were given up and had one; `unfinished`
    jobs; `switches` of the scheduler; and how far mean, 95th percentile and a mix of both with
    `late` lie above the best that a scheduler of the menu reaches alone, as shares: `jct_gap`,
    `p95_gap`, `mixed_gap`.

    ## Many at once

    `gymnasium.make_vec("yardmaster/PickScheduler-v0", num_envs=256, threads=2)` steps many
    environments in one compiled call; environment `i` is the same, step by step, as a single one
    reset with `seed + i`. An episode that ends is followed by the next within the same step
    (`AutoresetMode.SAME_STEP`): its last observation and info are in `infos["final_obs"]` and
    `infos["final_info"]`. `copy=False` hands out the arrays that the next step writes to.

    ## Version

    `v0`. The number goes up when the same actions would mean something else. What the numbers of an
    observation mean has a version of its own, `SCHEMA` in `engine.choosing.sight`, which is kept
    with every trained chooser.
    """

    batch: NumberedChoosing

    def __init__(
        self,
        *,
        task: str | ChoosingTask = "regimes",
        split: Split = "train",
        observation: str = "flat",
        compiled: bool = True,
        render_mode: str | None = None,
        **changes: Any,
    ) -> None:
        """Open the environment.

        Args:
            task: a name of `CHOOSING_TASKS`, or a task.
            split: which of its sets of episodes: train, val or report.
            observation: flat or dict.
            compiled: False runs the same functions as plain Python: slow, and easy to step through.
            render_mode: None or ansi.
            **changes: settings of the task to change, by name; see `ChoosingTask` and
                `ChoiceSight`.

        Raises:
            UnknownNameError: if a name or a setting is unknown.
        """
        batch = opened_choosing(task, changes, split, size=1, compiled=compiled)
        super().__init__(shown(batch, observation), render_mode)


def shown(batch: NumberedChoosing, kind: str) -> Shown:
    """Return environments of choosing as Gymnasium shows them, flat or as a dictionary."""
    sight = batch.task.sight
    return Shown(
        batch, space(sight, kind), partial(arranged, sight=sight, kind=kind), batch.picture
    )
