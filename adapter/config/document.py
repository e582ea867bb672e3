"""Parse YAML text into plain values, with the line of each setting."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

import yaml

from adapter.config.faults import Fault, Path, path_of, value_text
from adapter.errors import ConfigError

_MANIFESTS = (".yaml", ".yml", ".json")
_KINDS = ("str", "int", "float", "bool", "null", "map", "seq", "merge")
_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in _KINDS)
_MERGE = "tag:yaml.org,2002:merge"
_Check = Callable[[yaml.Node, Path], Iterator[Fault]]
MOST_MERGED_KEYS = 1_000_000  # 10 000 workloads that each merge 100 keys
_CLOCK = ("tag:yaml.org,2002:str", re.compile(r"[-+]?[0-9]+(:[0-9]+)+(\.[0-9]*)?$"))  # YAML 1.1 reads 22:00 as 22 * 60
# Helm writes 0.00005 as 5e-05, which YAML 1.1 reads as text.
_EXPONENT = ("tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+e-[0-9]+$"))
# A text whose last line has an expression of helm, or follows a line that begins with one, such as {{ if .Values.x }}.
_TEMPLATE = re.compile(r"(\{\{|^[ \t]*\{\{.*\n([ \t]*(#.*)?\n)*).*\Z", re.MULTILINE)
# A problem of the parser -> what probably makes it one.
_UNQUOTED = {
    "mapping values are not allowed here": "write a text with ': ', such as a query, in quotes, "
    "or indent this line as those above it",
    "expected ',' or '}', but got '{'": "write a text with braces, such as a query, in quotes",
}


class _Loader(yaml.SafeLoader):
    """Parses the types of JSON. Dates and times stay text, because a label may look like one."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # the parent's attribute, narrowed
        first: [_CLOCK, _EXPONENT, *((tag, pattern) for tag, pattern in resolvers if tag in _TAGS)]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file."""

    values: dict[Any, Any]
    where: str  # the name of the file in messages
    root: yaml.Node
    prefix: str = ""  # path of the setting that holds the values, "" for the whole file

    def line_of(self, path: Path) -> int:
        """The line of a setting, or of its nearest parent in the file; the first line is 1."""
        node, line = self.root, self.root.start_mark.line
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            key, node = found
            line = key.start_mark.line
        return line + 1

    def below(self, name: str, values: dict[Any, Any]) -> "Document":
        """A document of these values, which have the paths and lines of the settings below a setting."""
        return replace(self, values=values, prefix=name)

    def located(self, sentences: Iterable[str]) -> list[str]:
        """The sentences in the order of the file, each with its path in the file and its line."""
        whole = [self._with_whole_path(sentence) for sentence in sentences]
        lines = {sentence: self.line_of(path_of(sentence)) for sentence in whole}
        ordered = sorted(lines, key=lines.__getitem__)
        return [f"{sentence} ({self.where} line {lines[sentence]})" for sentence in ordered]

    def error(self, sentences: Iterable[str]) -> ConfigError:
        """One error with all faults."""
        return ConfigError(self.located(sentences))

    def _with_whole_path(self, sentence: str) -> str:
        dot = "" if sentence.startswith("[") or not self.prefix else "."
        return f"{self.prefix}{dot}{sentence}"


def text_of(path: FilePath) -> str:
    """The text of the file. Raises ConfigError if it cannot be read or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}; expected a YAML file"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([f"{path}: expected UTF-8 text, got other bytes at byte {error.start}"]) from error


def manifest_files(paths: Iterable[FilePath]) -> Iterator[FilePath]:
    """The files among the paths, and those with manifests in the folders among them, as kubectl selects them."""
    for path in paths:
        yield from sorted(file for file in path.iterdir() if file.suffix in _MANIFESTS) if path.is_dir() else [path]


def manifests(path: FilePath) -> list[tuple[dict[Any, Any], list[str]]]:
    """The objects of a file, also those of lists, each with a sentence for every key that it sets twice.

    Raises ConfigError if the file is not YAML.
    """
    text = text_of(path)
    try:
        nodes = [node for root in yaml.compose_all(text, _Loader) for node in _objects(root)]
        # The keys are compared first, because to construct an object adds merged keys to its nodes.
        repeated = [[fault.sentence() for fault in _faults(node, _invalid_keys, (), (), set())] for node in nodes]
        return list(zip((_Loader("").construct_document(node) for node in nodes), repeated, strict=True))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        is_template = mark and _TEMPLATE.search("\n".join(text.splitlines()[: mark.line + 1]))
        hint = "looks like a Helm template; render it with `helm template`, and check the result"
        raise ConfigError([f"{path}{_position(error)}: {hint if is_template else _cause(error)}"]) from error
    except (ValueError, LookupError, RecursionError) as error:
        raise ConfigError([f"{path}: is not YAML: {error}"]) from error


def _objects(root: yaml.Node) -> list[yaml.Node]:
    """The objects of a document, which may be a list as kubectl prints it."""
    _, items = _child(root, "items") or (root, root)
    found = items.value if isinstance(items, yaml.SequenceNode) else [root]
    return [node for node in found if isinstance(node, yaml.MappingNode)]


def read(text: str, where: str) -> Document:
    """Parse a text. Raises ConfigError if it is empty, not YAML, not a mapping, or has a duplicate key."""
    root, values = _parse(text, where)
    if not isinstance(values, dict):
        raise ConfigError([f"{where}: expected a mapping with sources and pipeline, got {value_text(values)}"])
    if "sources" not in values and {"apiVersion", "kind"} <= values.keys():
        fault = "expected a configuration with sources and pipeline, got a manifest of Kubernetes"
        raise ConfigError([f"{where}: {fault}; check HPAs with --hpa FILE beside --config"])
    return Document(values, where, root)


def _parse(text: str, where: str) -> tuple[yaml.Node, Any]:
    loader: _Loader | None = None
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            raise ConfigError([f"{where}: is empty; expected a mapping with sources and pipeline"])
        unsupported = [f"{fault.sentence()} ({where})" for fault in _faults(root, _unsupported, (), (), set())]
        if unsupported:
            raise ConfigError(unsupported)
        if _merged_keys(root) > MOST_MERGED_KEYS:
            raise ConfigError([f"{where}: merges (<<) add more than {MOST_MERGED_KEYS} keys; write the settings out"])
        return root, loader.construct_document(root)
    except yaml.YAMLError as error:
        raise ConfigError([f"{where}{_position(error)}: {_cause(error)}"]) from error
    except (ValueError, LookupError) as error:  # an invalid number such as 0x or !!int ''
        raise ConfigError([f"{where}: is not YAML: a value is invalid for its type ({error})"]) from error
    except RecursionError as error:
        raise ConfigError([f"{where}: is nested too deeply for a configuration"]) from error
    finally:
        if loader is not None:
            loader.dispose()


def _merged_keys(root: yaml.Node) -> int:
    """The keys that all merges of a document add. They are counted first, because merges of merges multiply."""
    sizes: dict[yaml.Node, int] = {}
    _size(root, sizes)
    return sum(size - len(node.value) for node, size in sizes.items() if isinstance(node, yaml.MappingNode))


def _size(node: yaml.Node, sizes: dict[yaml.Node, int]) -> int:
    """The keys of a mapping with its merges, or of the mappings of a list; sizes receives those of every node below."""
    if node not in sizes:
        if isinstance(node, yaml.MappingNode):
            keys = [(key.tag == _MERGE, _size(value, sizes)) for key, value in node.value]
            sizes[node] = sum(size if is_merge else 1 for is_merge, size in keys)
        else:
            sizes[node] = sum(_size(each, sizes) for each in node.value) if isinstance(node.value, list) else 0
    return sizes[node]


def _position(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f" line {mark.line + 1} column {mark.column + 1}" if mark else ""


def _cause(error: yaml.YAMLError) -> str:
    if getattr(error, "context", None) == "expected a single document in the stream":
        return "holds more than one document; keep that of the configuration, without manifests of Kubernetes"
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
    hint = "; indent with spaces, not tabs" if "\\t" in problem else ""
    if problem.startswith("expected <block end>") and problem.endswith("start>'"):
        hint = "; indent this line as the keys or entries that it belongs to"
    if problem in _UNQUOTED:
        hint = f"; {_UNQUOTED[problem]}"
    return f"is not YAML: {problem}{_begin(error)}{hint}"


def _begin(error: yaml.YAMLError) -> str:
    """The line of the open bracket, text or block, which may be far above the position of the error."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.context_mark is None:
        return ""
    return f", {error.context} that begins in line {error.context_mark.line + 1}"


def _faults(node: yaml.Node, check: _Check, path: Path, above: tuple[int, ...], seen: set[int]) -> Iterator[Fault]:
    """The faults that a check finds in a node and in those below it, and recursive aliases."""
    if id(node) in above:
        yield Fault(path, "contains itself through an alias")
    if id(node) in seen:
        return
    seen.add(id(node))
    yield from check(node, path)
    for step, child in _children(node):
        yield from _faults(child, check, (*path, step), (*above, id(node)), seen)


def _unsupported(node: yaml.Node, path: Path) -> Iterator[Fault]:
    """What a configuration does not support: tags, DEL, invalid keys, and late merges."""
    if node.tag not in _TAGS:
        yield Fault(path, f"has the tag {node.tag}; expected plain text, numbers, lists and mappings")
    if isinstance(node, yaml.ScalarNode) and "\x7f" in node.value:
        yield Fault(path, "has the control character \\x7f, with which helm fails; remove it")
    yield from _invalid_keys(node, path)
    merges = [key for key, _ in node.value if key.tag == _MERGE] if isinstance(node, yaml.MappingNode) else []
    if merges and merges[0] is not node.value[0][0]:
        text = "helm lets a merge replace the settings above it; write it as the first one of its mapping"
        yield Fault((*path, merges[0].value), f"{text} (line {merges[0].start_mark.line + 1})")


def _invalid_keys(node: yaml.Node, path: Path) -> Iterator[Fault]:
    """Keys that are no text, and those that a mapping sets twice."""
    first: dict[str, int] = {}
    for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            text = f"expected text as the key in line {line}, got a list or mapping"
            yield Fault(path, f"{text}; if it is a template, write its value, because none is rendered in this file")
        elif key.value in first:
            yield Fault((*path, key.value), f"is set twice, in lines {first[key.value]} and {line}; remove one")
        else:
            first[key.value] = line


def _children(node: yaml.Node) -> Iterator[tuple[str | int, yaml.Node]]:
    if isinstance(node, yaml.SequenceNode):
        yield from enumerate(node.value)
    if isinstance(node, yaml.MappingNode):
        yield from ((str(key.value), value) for key, value in node.value if isinstance(key, yaml.ScalarNode))


def _child(node: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """The key node and the value node of a step."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(step)), None)
    return None
