"""Several processes of one function, whose errors come back."""
import multiprocessing
import multiprocessing.connection
import pickle
import sys
import traceback


class ProcessException(Exception):
    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """The function raised in one process."""


class ProcessExitedException(ProcessException):
    """A process ended by a signal, or with another exit code than 0."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


def _run(fn, i, args, errors):
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        errors.send_bytes(pickle.dumps(traceback.format_exc()))
        sys.exit(1)


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes, errors):
        self.processes, self._errors = processes, errors

    def pids(self):
        return [int(process.pid) for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Waits for a process to end: True when all have. After an error the others are ended, and it is raised here."""
        running = {process.sentinel: i for i, process in enumerate(self.processes) if process.exitcode is None}
        ready = multiprocessing.connection.wait(list(running), timeout=timeout) if running else []
        for sentinel in ready:
            self.processes[running[sentinel]].join()
        failed = next((i for i, process in enumerate(self.processes) if process.exitcode not in (None, 0)), None)
        if failed is None:
            return all(process.exitcode == 0 for process in self.processes)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join(grace_period)
        self._raise(failed)

    def _raise(self, index):
        process, errors = self.processes[index], self._errors[index]
        if errors.poll():
            text = pickle.loads(errors.recv_bytes())
            raise ProcessRaisedException(f"\n\n-- Process {index} terminated with the following error:\n{text}", index, process.pid)
        raise ProcessExitedException(f"process {index} terminated with exit code {process.exitcode}", index, process.pid, process.exitcode)


SpawnContext = ProcessContext


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """`fn(i, *args)` in `nprocs` processes."""
    context = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for i in range(nprocs):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, i, args, sender), daemon=daemon)
        process.start()
        processes.append(process)
        errors.append(receiver)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """`start_processes` by the method "spawn"."""
    if start_method != "spawn":
        raise NotImplementedError(f"torch.multiprocessing.spawn(start_method={start_method!r}) is not in Umbra: use start_processes")
    return start_processes(fn, args, nprocs, join, daemon, start_method)
