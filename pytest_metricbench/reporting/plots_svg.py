"""matplotlib's SVG made fit for a page: no style attributes, which a strict content security policy ignores.

What a style says stands in presentation attributes instead (SVG 2, section 6.6), the foreground is ``currentColor``
so that the picture follows the page into the dark, and every id has a prefix so that a page can hold several.
"""

import re
from collections.abc import Mapping
from typing import Final
from xml.etree import ElementTree as ET

FOREGROUND: Final = "#010203"
"""Stands for the colour of text while matplotlib draws."""
_DROPPED: Final = frozenset({"metadata", "style"})
_NOT_ATTRIBUTES: Final = frozenset({"font", "font-family", "font-stretch", "font-style", "font-variant"})
"""What a style says of the typeface: the page decides. (``font`` is no presentation attribute.)"""
_FONT_SIZE: Final = re.compile(r"([0-9.]+)px")
_REFERENCE: Final = re.compile(r"url\(#([^)]+)\)")
_LINK: Final = "{http://www.w3.org/1999/xlink}href"
_LONG_NUMBER: Final = re.compile(r"-?\d+\.\d{3,}")


def embedded_svg(text: str, *, name: str, title: str, description: str, titles: Mapping[str, str]) -> str:
    """An SVG of matplotlib's as an element of a page of HTML.

    Args:
        text: the document that matplotlib wrote.
        name: what every id in it starts with.
        title: name of the picture for assistive technology.
        description: its description, likewise.
        titles: id of a group -> its title, which browsers show on hover. Texts of any kind: they are escaped.
    """
    root = ET.fromstring(text)
    box = root.get("viewBox", "")
    _clean(root, name, titles)
    for key in list(root.attrib):
        del root.attrib[key]
    root.attrib |= {
        "class": "plot",
        "viewBox": box,
        "width": box.split()[2],
        "height": box.split()[3],
        "role": "img",
        "aria-labelledby": f"{name}-title {name}-desc",
        "font-family": "system-ui, sans-serif",
        "stroke-linejoin": "round",
        "stroke-linecap": "butt",
    }
    for position, (tag, words) in enumerate((("title", title), ("desc", description))):
        element = ET.Element(tag, {"id": f"{name}-{tag}"})
        element.text = words
        root.insert(position, element)
    return ET.tostring(root, encoding="unicode")


def _clean(element: ET.Element, name: str, titles: Mapping[str, str]) -> None:
    """Make an element and everything in it fit, in place."""
    element.tag = _local(element.tag)
    for child in list(element):
        if not isinstance(child.tag, str) or _local(child.tag) in _DROPPED:
            element.remove(child)
        else:
            _clean(child, name, titles)
    element.text, element.tail = _text(element), None
    given = element.attrib.get("id", "")
    element.attrib = _attributes(element, name)
    if given in titles:
        title = ET.Element("title")
        title.text = titles[given]
        element.insert(0, title)


def _text(element: ET.Element) -> str | None:
    """The words of a text; what else there is between elements is layout."""
    return element.text.strip() if element.tag == "text" and element.text else None


def _attributes(element: ET.Element, name: str) -> dict[str, str]:
    found = {}
    for key, value in element.attrib.items():
        if key == "style":
            found.update(_from_style(value))
        elif key == "id":
            found["id"] = f"{name}-{value}"
        elif key == _LINK:
            found["href"] = f"#{name}-{value.removeprefix('#')}"
        else:
            found[_local(key)] = value
    return {key: _value(value, name) for key, value in found.items()}


def _from_style(style: str) -> dict[str, str]:
    """A style's declarations as presentation attributes."""
    found = {}
    for declaration in style.split(";"):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key == "font" and (size := _FONT_SIZE.search(value)):
            found["font-size"] = size[1]
        elif key == "font-size":
            found[key] = value.removesuffix("px")
        elif key and key not in _NOT_ATTRIBUTES:
            found[key] = value
    return found


def _value(value: str, name: str) -> str:
    """A value with its references, its colour and its numbers as the page needs them."""
    if value == FOREGROUND:
        return "currentColor"
    value = _REFERENCE.sub(rf"url(#{name}-\1)", value)
    return _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}", value).strip()


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]
