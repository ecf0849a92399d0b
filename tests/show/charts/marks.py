"""What a chart draws, counted in its SVG."""

from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def marks_in(root: ElementTree.Element) -> list[str]:
    """List the marks of a chart by kind: mark-line, mark-rule, mark-symbol."""
    groups = ((group, group.attrib.get("class", "").split()) for group in root.iter(f"{SVG}g"))
    return [
        classes[0]
        for group, classes in groups
        if "role-mark" in classes
        for _ in (*group.findall(f"{SVG}path"), *group.findall(f"{SVG}line"))
    ]
