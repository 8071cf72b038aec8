"""Tailback as a ReFrame test: green while congestion stays within limits, red when a threshold fails or a figure leaves its reference.

    reframe -C SITE.py -c tailback.py -r                                     on a cluster, with the site's configuration
    reframe -c tailback.py -r -S machine=small -S options='--budget 1ms'     simulated, on one machine

`thresholds` are what `--fail-if` takes: conditions in which the test is red. Figures come from the result file, not from what is
printed: `lat_impact`, `lat_added` and so on for every canary. A site gives its references in a class of its own:

    import tailback

    @rfm.simple_test
    class OurNetwork(tailback.Tailback):
        reference = {'cluster:partition': {'lat_added': (200, None, 0.2, 'us')}}
"""

import json
import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import deferrable, run_after, run_before, sanity_function, variable


@rfm.simple_test
class Tailback(rfm.RunOnlyRegressionTest):
    descr = 'Congestion impact of canaries under load (tailback run)'
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = 'tailback'

    #: Nodes and ranks per node of a real run.
    nodes = variable(int, value=16)
    ranks_per_node = variable(int, value=4)
    #: A machine to simulate instead: then one task does it all.
    machine = variable(str, value='')
    #: Further options of `tailback run`, in one string.
    options = variable(str, value='')
    #: Thresholds, separated by semicolons.
    thresholds = variable(str, value='')

    @run_after('init')
    def size(self):
        self.num_tasks = 1 if self.machine else self.nodes * self.ranks_per_node
        self.num_tasks_per_node = 1 if self.machine else self.ranks_per_node
        self.time_limit = '30m'

    @run_before('run')
    def command(self):
        self.executable_opts = ['run', '--out', 'result.json', '--quiet', *self.options.split()]
        if self.machine:
            self.executable_opts += ['--transport', 'sim', '--machine', self.machine]
        else:
            # Ranks without MPI let only those in that know the job's secret.
            self.prerun_cmds = [f'export TAILBACK_SECRET=$({self.executable} secret)']
        for threshold in filter(None, (text.strip() for text in self.thresholds.split(';'))):
            self.executable_opts += ['--fail-if', f"'{threshold}'"]

    @deferrable
    def results(self):
        with open(os.path.join(self.stagedir, 'result.json')) as file:
            return json.load(file)

    @deferrable
    def exit_code_is(self, expected):
        words = {0: 'passed', 1: 'a threshold failed', 2: 'could not run', 3: 'inconclusive'}
        code = self.job.exitcode
        return sn.assert_eq(code, expected, msg=f'tailback: exit code {code}: {words.get(code, "ended by a signal")}')

    @sanity_function
    def passed(self):
        return sn.all([self.exit_code_is(0), sn.assert_true(sn.len(self.results()['runs']), msg='no run in result.json')])

    @deferrable
    def figure(self, at, path):
        value = self.results()['runs'][0]['impacts'][at]
        for name in path:
            value = value[name]
        return value

    @run_before('performance')
    def figures(self):
        # Known only now: what was measured is in the file.
        impacts = self.results().evaluate()['runs'][0]['impacts']
        self.perf_variables = {}
        for at, impact in enumerate(impacts):
            kernel = impact['kernel'].replace('-', '_')
            paths = {f'{kernel}_impact': (['headline', 'factor'], 'x'), f'{kernel}_added': (['added_us', 'value'], 'us')}
            for name, (path, unit) in paths.items():
                try:
                    self.figure(at, path).evaluate()
                except (KeyError, TypeError):
                    # Not reportable: a figure that is missing is no figure of 0.
                    continue
                self.perf_variables[name] = sn.make_performance_function(self.figure(at, path), unit)
