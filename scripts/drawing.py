"""Pictures of the documentation as SVG, element by element, with a paper of their own, so that they look
the same on a light and on a dark page. Standard library only."""
from xml.sax.saxutils import escape

OURS, OTHERS, THIRD = "#1763c6", "#a7b0ba", "#6d7782"
INK, FAINT, PAPER, LINE = "#1c2430", "#5b6673", "#ffffff", "#d8dde3"
GROUND = "#f4f6f8"


class Drawing:
    """All places in pixels from the left and from the top."""

    def __init__(self, width, height, made):
        self.width, self.height, self.made = width, height, made
        self.out = []
        self.box(0, 0, width, height, GROUND, round_=8)

    def text(self, x, y, words, size=13, fill=INK, weight="normal", anchor="start"):
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" '
                        f'font-weight="{weight}" text-anchor="{anchor}">{escape(words)}</text>')

    def box(self, x, y, width, height, fill, stroke="none", round_=0):
        self.out.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
                        f'fill="{fill}" stroke="{stroke}" rx="{round_}"/>')

    def path(self, points, stroke, width=1.0):
        place = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.out.append(f'<polyline points="{place}" fill="none" stroke="{stroke}" '
                        f'stroke-width="{width}" stroke-linejoin="round"/>')

    def arrow(self, points, stroke, width=1.4, size=6.0):
        """Along the points, with a head at the last one."""
        (x0, y0), (x, y) = points[-2:]
        length = ((x - x0) ** 2 + (y - y0) ** 2) ** 0.5
        across, down = (x - x0) / length, (y - y0) / length
        back = (x - size * across, y - size * down)
        half = size * 0.55
        self.path([*points[:-1], back], stroke, width)
        self.out.append(f'<polygon points="{x:.1f},{y:.1f} {back[0] - half * down:.1f},{back[1] + half * across:.1f} '
                        f'{back[0] + half * down:.1f},{back[1] - half * across:.1f}" fill="{stroke}"/>')

    def dot(self, x, y, fill):
        self.out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{fill}"/>')

    def page(self, title, about):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
                f'viewBox="0 0 {self.width} {self.height}" role="img" '
                'font-family="Helvetica, Arial, \'DejaVu Sans\', sans-serif">')
        return "\n".join([f"<!-- Made by {self.made}. -->", head,
                          f"<title>{escape(title)}</title>", f"<desc>{escape(about)}</desc>",
                          *self.out, "</svg>"]) + "\n"
