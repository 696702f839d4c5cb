"""What nodes get besides their calls: metadata that a program sets while it is being recorded."""
import contextlib
import enum
import functools
import json
import threading

from umbra import _C

__all__ = ["NodeSource", "NodeSourceAction", "annotate", "annotate_fn", "current_meta", "format_stack", "get_current_meta", "has_preserved_node_meta", "preserve_node_meta", "set_current_meta", "set_stack_trace"]


class NodeSourceAction(enum.Enum):
    """What was done with a node to make another one of it."""
    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """A node that another one was made of, and by which pass: `node.meta["from_node"]` is a list of these. They are not changed."""

    class NodeInfo:
        def __init__(self, name, target, graph_id):
            self.name, self.target, self.graph_id = name, target, graph_id

    def __init__(self, node, pass_name="", action=None):
        self.pass_name = pass_name
        self.action = [] if action is None else action if isinstance(action, list) else [action]
        for one in self.action:
            if not isinstance(one, NodeSourceAction):
                raise AssertionError(f"Expected NodeSourceAction, got {type(one)}")
        self.node_info = self.NodeInfo(node.name, str(node.target), id(node.graph)) if node else None
        self.from_node = list(node.meta.get("from_node", ())) if node else []

    name = property(lambda self: self.node_info.name if self.node_info else "")
    target = property(lambda self: self.node_info.target if self.node_info else "")
    graph_id = property(lambda self: self.node_info.graph_id if self.node_info else -1)

    def __repr__(self):
        return self.print_readable()

    def _get_action_string(self):
        return "+".join(one.name.lower() for one in self.action)

    def print_readable(self, indent=0):
        """The node and what it was made of, one to a line; ten levels of it."""
        if indent > 9:
            return ""
        line = f"(name={self.name}, pass_name={self.pass_name}, action={self._get_action_string()}, graph_id={self.graph_id})\n"
        return "    " * indent + line + "".join(source.print_readable(indent + 1) for source in self.from_node)

    def to_dict(self):
        return {"name": self.name, "target": self.target, "graph_id": self.graph_id, "pass_name": self.pass_name, "action": self._get_action_string(),
                "from_node": [source.to_dict() for source in self.from_node]}

    @classmethod
    def _from_dict(cls, described):
        if described is None:
            return None
        known = {one.name.lower(): one for one in NodeSourceAction}
        self = cls(None, described["pass_name"], [known[name] for name in described["action"].split("+") if name in known])
        if "name" in described:
            self.node_info = cls.NodeInfo(described["name"], described["target"], described["graph_id"])
        self.from_node = [cls._from_dict(source) for source in described["from_node"]]
        return self

    def __eq__(self, other):
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self):
        return hash(json.dumps(self.to_dict(), sort_keys=True))


def read_sources(text):
    """What a node was made of, from the form that the library and files have it in."""
    return [NodeSource._from_dict(described) for described in json.loads(text)]


def sources_text(sources):
    """The same the other way round; None for what is no list of sources."""
    if not (isinstance(sources, (list, tuple)) and all(isinstance(source, NodeSource) for source in sources)):
        return None
    return json.dumps([source.to_dict() for source in sources])


class _State(threading.local):
    def __init__(self):
        self.meta, self.preserve, self.custom = {}, False, {}


_state = _State()


def __getattr__(name):
    if name == "current_meta":
        return _state.meta
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@contextlib.contextmanager
def preserve_node_meta(enable=True):
    """Within it, nodes that are recorded take over the current metadata."""
    before = _state.preserve, _state.meta
    _state.preserve, _state.meta = enable, dict(_state.meta)
    _publish()
    try:
        yield
    finally:
        _state.preserve, _state.meta = before
        _publish()


def has_preserved_node_meta():
    return _state.preserve


@contextlib.contextmanager
def annotate(annotation_dict):
    """Within it, what is traced has these entries in `node.meta["custom"]`; inner ones come before outer ones."""
    before = _state.custom
    _state.custom = {**before, **annotation_dict}
    _publish()
    try:
        yield
    finally:
        _state.custom = before
        _publish()


def _publish():
    """Tells the tracers of captures what is noted; one that does not preserve metadata takes nothing over."""
    _C._set_annotations(_state.custom if _state.preserve and _state.custom else None)


def annotations_json(notes):
    """What is noted of a node, as files have it."""
    return json.dumps(notes) if notes else ""


def annotations_text(notes):
    """The same as readable printing shows it: long values are cut."""
    if not isinstance(notes, dict):
        return repr(notes) if notes else ""
    return repr({key: text[:40] + "..." if len(text := str(value)) > 40 else value for key, value in notes.items()}) if notes else ""


def current_annotations():
    """The entries that `annotate` has set."""
    return dict(_state.custom)


def annotate_fn(annotation_dict):
    """The same for calls of a function."""
    def decorate(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            with annotate(annotation_dict):
                return function(*args, **kwargs)
        return call
    return decorate


@contextlib.contextmanager
def set_current_meta(node, pass_name=""):
    """Within it, the current metadata are those of a node."""
    before = _state.meta
    if _state.preserve and node.meta:
        _state.meta = {**node.meta, "from_node": [NodeSource(node, pass_name, NodeSourceAction.CREATE)]}
    try:
        yield
    finally:
        _state.meta = before


def get_current_meta():
    return _state.meta


def set_stack_trace(stack):
    if _state.preserve and stack:
        _state.meta["stack_trace"] = "".join(stack)


def format_stack():
    """The current node's lines, or those of the program that is running."""
    import traceback
    if _state.preserve:
        return [_state.meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])
