//! Plots as SVG: cycles a packet against what grows, and latencies.
//!
//! In: results. Out: a picture for each family of workloads of which there are at least two, and one of latencies. Never: a row
//! of another family.

use std::collections::BTreeMap;

use plotters::prelude::*;

use super::Results;
use crate::report::Row;
use crate::workload::{Kind, Size, Workload};
use crate::{Error, latency};

/// Workloads of which one thing grows.
#[derive(Debug)]
pub struct Family {
    /// What its file is called.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What grows.
    grows: &'static str,
    /// How much of it a workload of the family has.
    amount: fn(Kind) -> Option<u32>,
}

/// All families.
pub const FAMILIES: &[Family] = &[
    Family {
        name: "firewall",
        title: "stateful firewall",
        grows: "streams",
        amount: |kind| {
            if let Kind::Firewall { streams, protocol: crate::frames::Protocol::Udp } = kind {
                Some(streams)
            } else {
                None
            }
        },
    },
    Family {
        name: "flows",
        title: "flows over 20 classes",
        grows: "flows",
        amount: |kind| if let Kind::Classes { flows, classes: 20 } = kind { Some(flows) } else { None },
    },
    Family {
        name: "classes",
        title: "100,000 flows over classes, each of a mask of its own",
        grows: "classes",
        amount: |kind| if let Kind::Classes { flows: 100_000, classes } = kind { Some(classes) } else { None },
    },
    Family {
        name: "l2",
        title: "Ethernet addresses",
        grows: "addresses",
        amount: |kind| if let Kind::L2 { entries } = kind { Some(entries) } else { None },
    },
    Family {
        name: "l3",
        title: "IPv4 prefixes",
        grows: "prefixes",
        amount: |kind| if let Kind::L3 { prefixes } = kind { Some(prefixes) } else { None },
    },
    Family {
        name: "acl",
        title: "five-tuple rules",
        grows: "rules",
        amount: |kind| match kind {
            Kind::Acl { rules, traffic: crate::workload::Traffic::Hits } => Some(rules),
            _ => None,
        },
    },
    Family {
        name: "ports",
        title: "two ports among others",
        grows: "ports",
        amount: |kind| if let Kind::Ports { ports } = kind { Some(ports) } else { None },
    },
    Family {
        name: "flood",
        title: "one port to many",
        grows: "copies",
        amount: |kind| if let Kind::Flood { copies } = kind { Some(copies) } else { None },
    },
];

/// Pixels.
const PICTURE: (u32, u32) = (760, 440);

/// A line through points, for each engine.
type Lines = BTreeMap<String, Vec<(f64, f64)>>;

/// A plot.
#[derive(Debug)]
pub struct Picture {
    /// What its file is called, without the end.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Itself.
    pub svg: String,
}

/// A plot of each family of which two workloads were measured, and one of latencies.
///
/// # Errors
/// When one cannot be drawn.
pub fn draw_all(results: &Results) -> Result<Vec<Picture>, Error> {
    let mut pictures = Vec::new();
    let mut draw = |name, title, draw: &dyn Fn(&mut String) -> Result<(), DrawError>| {
        let mut svg = String::new();
        draw(&mut svg).map_err(|error| Error::Failed(format!("{name}.svg: {error}")))?;
        pictures.push(Picture { name, title, svg });
        Ok::<(), Error>(())
    };
    for family in FAMILIES {
        let lines = lines(family, &results.forward.rows);
        if lines.values().any(|points| points.len() >= 2) {
            let axes =
                Axes { title: &format!("{}: cycles a packet", family.title), x: family.grows, y: "cycles a packet" };
            draw(family.name, family.title, &|svg| draw_lines(&axes, &lines, svg))?;
        }
    }
    let lines = latencies(&results.others.latency);
    if !lines.is_empty() {
        let axes =
            Axes { title: "latency at half of the capacity", x: "packets that take longer: one of", y: "microseconds" };
        draw("latency", "latency at half of the capacity", &|svg| draw_lines(&axes, &lines, svg))?;
    }
    Ok(pictures)
}

/// Microseconds that all but one of so many packets take at most, by workload and engine.
fn latencies(rows: &[latency::Row]) -> Lines {
    let mut lines = Lines::new();
    for row in rows {
        let Some(of) = row.median().map(|figures| figures.latency) else { continue };
        let points = [(2.0, of.p50), (10.0, of.p90), (100.0, of.p99), (1000.0, of.p999)];
        let points = points.map(|(one_of, ns)| (one_of, ns.max(1) as f64 / 1e3));
        lines.insert(format!("{} {}", row.workload, row.engine), points.to_vec());
    }
    lines
}

/// What a plot says beside its lines.
struct Axes<'a> {
    title: &'a str,
    x: &'a str,
    y: &'a str,
}

fn lines(family: &Family, rows: &[Row]) -> Lines {
    let mut lines = Lines::new();
    for row in rows {
        let workload: Option<Workload> = row.workload.parse().ok();
        let of_family = workload.filter(|workload| workload.size == Size::Least).and_then(|w| (family.amount)(w.kind));
        if let Some(amount) = of_family {
            lines.entry(row.engine.clone()).or_default().push((f64::from(amount), row.cycles.median));
        }
    }
    lines.values_mut().for_each(|points| points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    lines
}

type DrawError = Box<dyn std::error::Error>;

fn draw_lines(axes: &Axes, lines: &Lines, svg: &mut String) -> Result<(), DrawError> {
    let points = || lines.values().flatten();
    let range = |of: fn(&(f64, f64)) -> f64| {
        points().map(of).fold((f64::INFINITY, 0.0_f64), |(min, max), at| (min.min(at), max.max(at)))
    };
    let ((left, right), (low, high)) = (range(|point| point.0), range(|point| point.1));
    let root = SVGBackend::with_string(svg, PICTURE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(axes.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(64)
        .build_cartesian_2d((left * 0.8..right * 1.25).log_scale(), (low * 0.7..high * 1.4).log_scale())?;
    chart
        .configure_mesh()
        .x_desc(axes.x)
        .y_desc(axes.y)
        .x_label_formatter(&whole)
        .y_label_formatter(&whole)
        .light_line_style(WHITE)
        .draw()?;
    for (i, (engine, points)) in lines.iter().enumerate() {
        let color = Palette99::pick(i).to_rgba();
        let line = LineSeries::new(points.iter().copied(), color.stroke_width(2));
        let sign = move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], color.stroke_width(2));
        chart.draw_series(line)?.label(engine).legend(sign);
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, color.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE)
        .border_style(BLACK.mix(0.3))
        .draw()?;
    root.present()?;
    Ok(())
}

/// A number of an axis.
fn whole(number: &f64) -> String {
    if *number >= 1.0 { format!("{number:.0}") } else { format!("{number}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::results;

    #[test]
    fn a_family_has_its_own_rows_in_order() {
        let results = results();
        let family = FAMILIES.iter().find(|family| family.name == "l2").unwrap();
        let lines = lines(family, &results.forward.rows);
        assert_eq!(lines["jit"].iter().map(|point| point.0).collect::<Vec<_>>(), [10.0, 1000.0]);
        assert!((lines["jit"][1].1 - 90.0).abs() < 1e-6);
        assert_eq!(lines.keys().collect::<Vec<_>>(), ["floor", "jit", "ovs"]);
    }
}
