//! Plots of cycles a packet against what grows, as SVG.
//!
//! In: rows of a report. Out: a picture for each family of workloads of which there are at least two. Never: a row of another
//! family.

use std::collections::BTreeMap;

use plotters::prelude::*;

use crate::Error;
use crate::report::Row;
use crate::workload::{Kind, Size, Workload};

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
type Lines<'r> = BTreeMap<&'r str, Vec<(f64, f64)>>;

/// The plot of a family, if two of its workloads were measured.
pub fn draw(family: &Family, rows: &[Row]) -> Result<Option<String>, Error> {
    let lines = lines(family, rows);
    if lines.values().all(|points| points.len() < 2) {
        return Ok(None);
    }
    let mut svg = String::new();
    draw_lines(family, &lines, &mut svg).map_err(|error| Error::Failed(format!("{}.svg: {error}", family.name)))?;
    Ok(Some(svg))
}

fn lines<'r>(family: &Family, rows: &'r [Row]) -> Lines<'r> {
    let mut lines = Lines::new();
    for row in rows {
        let workload: Option<Workload> = row.workload.parse().ok();
        let of_family = workload.filter(|workload| workload.size == Size::Least).and_then(|w| (family.amount)(w.kind));
        if let Some(amount) = of_family {
            lines.entry(&row.engine).or_default().push((f64::from(amount), row.cycles.median));
        }
    }
    lines.values_mut().for_each(|points| points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    lines
}

type DrawError = Box<dyn std::error::Error>;

fn draw_lines(family: &Family, lines: &Lines, svg: &mut String) -> Result<(), DrawError> {
    let points = || lines.values().flatten();
    let range = |of: fn(&(f64, f64)) -> f64| {
        points().map(of).fold((f64::INFINITY, 0.0_f64), |(min, max), at| (min.min(at), max.max(at)))
    };
    let ((left, right), (low, high)) = (range(|point| point.0), range(|point| point.1));
    let root = SVGBackend::with_string(svg, PICTURE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(format!("{}: cycles a packet", family.title), ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(64)
        .build_cartesian_2d((left * 0.8..right * 1.25).log_scale(), (low * 0.7..high * 1.4).log_scale())?;
    chart
        .configure_mesh()
        .x_desc(family.grows)
        .y_desc("cycles a packet")
        .x_label_formatter(&whole)
        .y_label_formatter(&whole)
        .light_line_style(WHITE)
        .draw()?;
    for (i, (engine, points)) in lines.iter().enumerate() {
        let color = Palette99::pick(i).to_rgba();
        let line = LineSeries::new(points.iter().copied(), color.stroke_width(2));
        let sign = move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], color.stroke_width(2));
        chart.draw_series(line)?.label(*engine).legend(sign);
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
    format!("{number:.0}")
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
        assert_eq!(lines.keys().copied().collect::<Vec<_>>(), ["floor", "jit", "ovs"]);
    }
}
