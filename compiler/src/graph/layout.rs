//! Where boxes stand: in layers, as Sugiyama, Tagawa and Toda laid out in 1981.
//!
//! In: a graph and the size of each box. Out: a place for each box and a line for each edge. Steps: edges that close a cycle
//! are turned around; each box gets a layer below all that lead to it; long edges get a stop in each layer they pass; layers
//! are put in the order of the averages of their neighbours, and the order with the fewest crossings is kept; boxes move
//! towards their neighbours as far as the order lets them. Nothing is random.

use super::Graph;

/// Between boxes side by side.
const GAP: f64 = 26.0;
/// Between layers.
const LAYER_GAP: f64 = 56.0;
/// Sweeps over the layers to find an order.
const SWEEPS: usize = 24;
/// Sweeps to find places.
const MOVES: usize = 30;

/// Where everything is.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Width of the picture.
    pub width: f64,
    /// Its height.
    pub height: f64,
    /// The centre of each box.
    pub centres: Vec<(f64, f64)>,
    /// The points of each edge, from box to box.
    pub lines: Vec<Vec<(f64, f64)>>,
}

/// A box, or a stop of a long edge.
struct Cell {
    width: f64,
    height: f64,
    layer: usize,
    x: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

/// Lays out a graph whose boxes have these widths and heights.
pub fn layout(graph: &Graph, sizes: &[(f64, f64)]) -> Layout {
    let turned = turned(graph);
    let ranks = layers(graph, &turned);
    let mut cells: Vec<Cell> = sizes
        .iter()
        .zip(&ranks)
        .map(|(&(width, height), &layer)| Cell { width, height, layer, x: 0.0, above: vec![], below: vec![] })
        .collect();
    let chains: Vec<Vec<usize>> =
        graph.edges.iter().zip(&turned).map(|(edge, turned)| chain(edge.from, edge.to, *turned, &mut cells)).collect();
    let mut order = first_order(&cells);
    find_order(&cells, &mut order);
    find_places(&mut cells, &order);
    let tops = tops(&cells, &order);
    let left = cells.iter().map(|cell| cell.x - cell.width / 2.0).fold(f64::INFINITY, f64::min);
    let right = cells.iter().map(|cell| cell.x + cell.width / 2.0).fold(f64::NEG_INFINITY, f64::max);
    let centre = |cell: &Cell| (cell.x - left + GAP, tops[cell.layer].0 + tops[cell.layer].1 / 2.0);
    let lines = graph.edges.iter().zip(&chains).zip(&turned);
    let lines = lines.map(|((edge, chain), turned)| {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (i, &at) in chain.iter().enumerate() {
            let (x, y) = centre(&cells[at]);
            let half = cells[at].height / 2.0;
            match i {
                0 => points.push((x, y + half)),
                i if i + 1 == chain.len() => points.push((x, y - half)),
                // Through a layer a line is upright.
                _ => {
                    let half = tops[cells[at].layer].1 / 2.0;
                    points.extend([(x, y - half), (x, y + half)]);
                }
            }
        }
        if *turned {
            points.reverse();
        }
        if edge.from == edge.to {
            let ((x, y), cell) = (centre(&cells[edge.from]), &cells[edge.from]);
            let right = x + cell.width / 2.0;
            points = vec![(right, y - 8.0), (right + 18.0, y - 8.0), (right + 18.0, y + 8.0), (right, y + 8.0)];
        }
        points
    });
    Layout {
        width: right - left + 2.0 * GAP,
        height: tops.last().map_or(0.0, |(top, height)| top + height) + GAP,
        lines: lines.collect(),
        centres: cells[..graph.nodes.len()].iter().map(centre).collect(),
    }
}

/// Whether each edge closes a cycle, so that it is laid out the other way round.
fn turned(graph: &Graph) -> Vec<bool> {
    let mut turned = vec![false; graph.edges.len()];
    // 0: not seen, 1: on the way, 2: done.
    let mut seen = vec![0u8; graph.nodes.len()];
    let out: Vec<Vec<usize>> = (0..graph.nodes.len())
        .map(|node| (0..graph.edges.len()).filter(|e| graph.edges[*e].from == node).collect())
        .collect();
    for start in 0..graph.nodes.len() {
        let mut stack = vec![(start, 0)];
        while let Some((node, at)) = stack.pop() {
            if at == 0 {
                if seen[node] != 0 {
                    continue;
                }
                seen[node] = 1;
            }
            let Some(&edge) = out[node].get(at) else {
                seen[node] = 2;
                continue;
            };
            stack.push((node, at + 1));
            let to = graph.edges[edge].to;
            match seen[to] {
                0 => stack.push((to, 0)),
                1 => turned[edge] = true,
                _ => {}
            }
        }
    }
    turned
}

/// The layer of each box: one below the lowest that leads to it.
fn layers(graph: &Graph, turned: &[bool]) -> Vec<usize> {
    let mut ranks = vec![0usize; graph.nodes.len()];
    for _ in 0..graph.nodes.len() {
        let mut moved = false;
        for (edge, turned) in graph.edges.iter().zip(turned).filter(|(edge, _)| edge.from != edge.to) {
            let (from, to) = if *turned { (edge.to, edge.from) } else { (edge.from, edge.to) };
            if ranks[to] <= ranks[from] {
                ranks[to] = ranks[from] + 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    // Ports stand together at the bottom.
    let last = ranks.iter().copied().max().unwrap_or(0);
    for (rank, node) in ranks.iter_mut().zip(&graph.nodes) {
        if node.kind == super::Kind::Port {
            *rank = last;
        }
    }
    ranks
}

/// The cells that an edge passes, from the upper box to the lower; stops are made for the layers between.
fn chain(from: usize, to: usize, turned: bool, cells: &mut Vec<Cell>) -> Vec<usize> {
    let (upper, lower) = if turned { (to, from) } else { (from, to) };
    let mut chain = vec![upper];
    for layer in cells[upper].layer + 1..cells[lower].layer {
        cells.push(Cell { width: 8.0, height: 0.0, layer, x: 0.0, above: vec![], below: vec![] });
        chain.push(cells.len() - 1);
    }
    chain.push(lower);
    for pair in chain.windows(2).filter(|pair| pair[0] != pair[1]) {
        cells[pair[0]].below.push(pair[1]);
        cells[pair[1]].above.push(pair[0]);
    }
    chain
}

fn first_order(cells: &[Cell]) -> Vec<Vec<usize>> {
    let layers = cells.iter().map(|cell| cell.layer).max().map_or(0, |layer| layer + 1);
    (0..layers).map(|layer| (0..cells.len()).filter(|c| cells[*c].layer == layer).collect()).collect()
}

/// Puts every layer in the order of the averages of its neighbours, from above and from below in turn.
fn find_order(cells: &[Cell], order: &mut Vec<Vec<usize>>) {
    let mut best = (crossings(cells, order), order.clone());
    for sweep in 0..SWEEPS {
        let down = sweep % 2 == 0;
        let layers: Vec<usize> =
            if down { (1..order.len()).collect() } else { (0..order.len()).rev().skip(1).collect() };
        for layer in layers {
            let beside = if down { layer - 1 } else { layer + 1 };
            let mut place = vec![0.0; cells.len()];
            order[beside].iter().enumerate().for_each(|(i, cell)| place[*cell] = i as f64);
            let own: Vec<(f64, usize)> = order[layer]
                .iter()
                .enumerate()
                .map(|(i, cell)| {
                    let near = if down { &cells[*cell].above } else { &cells[*cell].below };
                    (average(near, &place).unwrap_or(i as f64), *cell)
                })
                .collect();
            let mut own = own;
            own.sort_by(|a, b| a.0.total_cmp(&b.0)); // stable: equals keep their order
            order[layer] = own.into_iter().map(|(_, cell)| cell).collect();
        }
        let crossings = crossings(cells, order);
        if crossings < best.0 {
            best = (crossings, order.clone());
        }
    }
    *order = best.1;
}

fn average(near: &[usize], place: &[f64]) -> Option<f64> {
    let sum: f64 = near.iter().map(|cell| place[*cell]).sum();
    (!near.is_empty()).then(|| sum / near.len() as f64)
}

/// Pairs of lines that cross between neighbouring layers.
fn crossings(cells: &[Cell], order: &[Vec<usize>]) -> usize {
    let mut place = vec![0; cells.len()];
    order.iter().for_each(|layer| layer.iter().enumerate().for_each(|(i, cell)| place[*cell] = i));
    let mut crossings = 0;
    for layer in order {
        let mut lines: Vec<(usize, usize)> =
            layer.iter().flat_map(|c| cells[*c].below.iter().map(|below| (place[*c], place[*below]))).collect();
        lines.sort_unstable();
        for (i, a) in lines.iter().enumerate() {
            crossings += lines[i + 1..].iter().filter(|b| b.0 > a.0 && b.1 < a.1).count();
        }
    }
    crossings
}

/// Moves cells towards their neighbours, without changing their order or letting them touch.
fn find_places(cells: &mut [Cell], order: &[Vec<usize>]) {
    for layer in order {
        let mut x = 0.0;
        for &cell in layer {
            x += cells[cell].width / 2.0;
            cells[cell].x = x;
            x += cells[cell].width / 2.0 + GAP;
        }
    }
    for step in 0..MOVES {
        let down = step % 2 == 0;
        let layers: Vec<usize> = if down { (0..order.len()).collect() } else { (0..order.len()).rev().collect() };
        for layer in layers {
            let wanted: Vec<f64> = order[layer]
                .iter()
                .map(|&cell| {
                    let both = [cells[cell].above.clone(), cells[cell].below.clone()];
                    let near = if step + 2 >= MOVES { both.concat() } else { both[usize::from(!down)].clone() };
                    let sum: f64 = near.iter().map(|n| cells[*n].x).sum();
                    if near.is_empty() { cells[cell].x } else { sum / near.len() as f64 }
                })
                .collect();
            spread(cells, &order[layer], &wanted);
        }
    }
}

/// Gives the cells of a layer places near those wanted: the mean of pushing to the right and pushing to the left.
fn spread(cells: &mut [Cell], layer: &[usize], wanted: &[f64]) {
    let apart = |cells: &[Cell], a: usize, b: usize| (cells[a].width + cells[b].width) / 2.0 + GAP;
    let mut right = wanted.to_vec();
    for i in 1..layer.len() {
        right[i] = right[i].max(right[i - 1] + apart(cells, layer[i - 1], layer[i]));
    }
    let mut left = wanted.to_vec();
    for i in (1..layer.len()).rev() {
        left[i - 1] = left[i - 1].min(left[i] - apart(cells, layer[i - 1], layer[i]));
    }
    // Both keep cells apart, and so does their mean.
    for (i, &cell) in layer.iter().enumerate() {
        cells[cell].x = (left[i] + right[i]) / 2.0;
    }
}

/// Top and height of each layer.
fn tops(cells: &[Cell], order: &[Vec<usize>]) -> Vec<(f64, f64)> {
    let mut top = GAP;
    order
        .iter()
        .map(|layer| {
            let height = layer.iter().map(|cell| cells[*cell].height).fold(0.0, f64::max);
            let own = (top, height);
            top += height + LAYER_GAP;
            own
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Edge, Kind, Node, Way};
    use super::*;

    fn graph(nodes: usize, edges: &[(usize, usize)]) -> Graph {
        let node = Node { kind: Kind::Table, lines: vec![], detail: String::new() };
        let edges = edges.iter().map(|&(from, to)| Edge { from, to, way: Way::Goto, rules: 1 });
        Graph { name: "g".into(), nodes: vec![node; nodes], edges: edges.collect() }
    }

    fn placed(graph: &Graph) -> Layout {
        layout(graph, &vec![(100.0, 40.0); graph.nodes.len()])
    }

    #[test]
    fn boxes_never_touch_and_lie_in_the_picture() {
        let edges: Vec<(usize, usize)> =
            (0..50).flat_map(|i| [(i, (i * 7 + 3) % 50), (i, (i * i + 1) % 50), (i, (i + 1) % 50)]).collect();
        let layout = placed(&graph(50, &edges));
        for (i, a) in layout.centres.iter().enumerate() {
            assert!(a.0 >= 50.0 && a.0 + 50.0 <= layout.width && a.1 + 20.0 <= layout.height, "{a:?} in {layout:?}");
            for b in &layout.centres[i + 1..] {
                assert!((a.0 - b.0).abs() >= 100.0 || (a.1 - b.1).abs() >= 40.0, "{a:?} touches {b:?}");
            }
        }
    }

    #[test]
    fn gotos_lead_down_and_what_closes_a_cycle_up() {
        let layout = placed(&graph(3, &[(0, 1), (1, 2), (2, 1), (2, 2)]));
        let y = |line: &[(f64, f64)]| line[line.len() - 1].1 - line[0].1;
        assert!(y(&layout.lines[0]) > 0.0 && y(&layout.lines[1]) > 0.0 && y(&layout.lines[2]) < 0.0);
        assert_eq!(layout.lines[3].len(), 4);
    }

    #[test]
    fn lines_that_need_not_cross_do_not() {
        let graph = graph(5, &[(0, 1), (0, 2), (1, 4), (2, 3)]);
        let layout = placed(&graph);
        let x = |node: usize| layout.centres[node].0;
        assert_eq!(x(1) < x(2), x(4) < x(3));
    }
}
