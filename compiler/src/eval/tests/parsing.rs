//! P1–P28: what fields read for every kind of frame.

use super::*;
use crate::field::Header;

fn table(frame: &[u8], field: Field) -> u128 {
    reads(frame, field, View::Table)
}

fn tagged(tci: u16, eth_type: u16, payload: &[u8]) -> Vec<u8> {
    ethernet(0x8100, &[&tci.to_be_bytes()[..], &eth_type.to_be_bytes(), payload].concat())
}

/// The IP packet of a frame made by `ipv4` or `ipv6`.
fn packet(frame: &[u8]) -> &[u8] {
    &frame[14..]
}

#[test]
fn p1_short_frames_are_dropped_and_an_ethernet_header_is_enough() {
    let all = always(vec![output(1)]);
    for len in 0..14 {
        let outcome = run(&all, &vec![0; len]);
        assert_eq!(outcome.verdict.reason(), Some(DropReason::Malformed));
        assert_eq!(outcome.counters, [0, 0]);
    }
    assert_eq!(run(&all, &[0; 14]).ports(), [1]);
}

#[test]
fn p2_snap_leads_to_a_type_and_other_llc_does_not() {
    let udp = ipv4(17, &UDP);
    let snap = |head: &[u8]| ethernet(0x0040, &[head, packet(&udp)].concat());
    let ip = snap(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
    assert_eq!((table(&ip, Field::EthType), table(&ip, Field::Ipv4Src)), (0x0800, 0x0a00_0001));
    assert_eq!(table(&ip, Field::UdpDst), 53);
    for head in [
        [0x42, 0x42, 3, 0, 0, 0, 8, 0],    // other LLC
        [0xaa, 0xaa, 3, 0, 0, 1, 8, 0],    // other OUI
        [0xaa, 0xaa, 3, 0, 0, 0, 5, 0xff], // no type
    ] {
        let frame = snap(&head);
        assert_eq!((table(&frame, Field::EthType), table(&frame, Field::Ipv4Src)), (0x05ff, 0), "{head:x?}");
    }
    let short = ethernet(0x0040, &[0xaa, 0xaa, 3, 0, 0, 0, 8]);
    assert_eq!(table(&short, Field::EthType), 0x05ff);
}

#[test]
fn p3_one_tag_is_parsed_and_the_next_is_a_type() {
    let udp = ipv4(17, &UDP);
    let one = tagged(0x6064, 0x0800, packet(&udp));
    assert_eq!((table(&one, Field::EthType), table(&one, Field::UdpSrc)), (0x0800, 1000));
    let service = {
        let mut frame = one.clone();
        frame[12..14].copy_from_slice(&[0x88, 0xa8]);
        frame
    };
    assert_eq!(table(&service, Field::VlanVid), 100);
    let two = tagged(0x6064, 0x8100, &one[14..]);
    assert_eq!((table(&two, Field::EthType), table(&two, Field::Ipv4Src)), (0x8100, 0));
    let other = ethernet(0x9100, &one[14..]);
    assert_eq!((table(&other, Field::EthType), table(&other, Field::VlanTci)), (0x9100, 0));
    let both = super::super::headers::Headers::parse(&two, 2);
    assert_eq!((both.eth_type, both.tci, both.l3), (0x0800, Some(0x6064), 22));
    let none = super::super::headers::Headers::parse(&one, 0);
    assert_eq!((none.eth_type, none.tci), (0x8100, None));
}

#[test]
fn p4_bit_12_says_that_there_is_a_tag() {
    for tci in [0x6064, 0x7064] {
        let frame = tagged(tci, 0x0800, &[]);
        assert_eq!(table(&frame, Field::VlanTci), 0x7064);
        assert_eq!((table(&frame, Field::VlanVid), table(&frame, Field::VlanPcp)), (100, 3));
    }
}

#[test]
fn p5_vid_0_is_a_tag() {
    let frame = tagged(0, 0x0800, &[]);
    assert!(holds(Cond::Has(Header::Vlan), &frame));
    assert_eq!(table(&frame, Field::VlanTci), 0x1000);
    assert!(!holds(Cond::Has(Header::Vlan), &ethernet(0x0800, &[])));
}

#[test]
fn p6_a_tag_cut_short_is_a_type() {
    let whole = tagged(0x6064, 0x0800, &[]);
    for len in 14..18 {
        assert_eq!(table(&whole[..len], Field::EthType), 0x8100, "{len}");
        assert_eq!(table(&whole[..len], Field::VlanTci), 0, "{len}");
    }
    assert_eq!(table(&whole[..18], Field::EthType), 0x0800);
}

#[test]
fn p10_a_malformed_ipv4_header_reads_0_and_is_still_ipv4() {
    let good = ipv4(17, &UDP);
    assert_eq!(table(&good, Field::IpTtl), 64);
    for (at, byte) in [(14, 0x44), (14, 0x4f), (17, 33), (17, 19), (16, 1)] {
        let mut bad = good.clone();
        bad[at] = byte;
        for field in [Field::Ipv4Src, Field::Ipv4Dst, Field::IpProto, Field::IpTtl, Field::IpDscp, Field::UdpDst] {
            assert_eq!(table(&bad, field), 0, "byte {at} = {byte}: {field:?}");
        }
        assert!(holds(Cond::Has(Header::Ipv4), &bad) && !holds(Cond::Has(Header::Udp), &bad));
        assert_eq!(table(&bad, Field::EthType), 0x0800);
    }
    assert_eq!(table(&good[..33], Field::Ipv4Src), 0);
}

#[test]
fn p11_version_and_checksum_are_not_checked_and_options_are_skipped() {
    let mut frame = ipv4(17, &UDP);
    frame[14] = 0x05;
    frame[24] ^= 0x55;
    frame[22] = 0;
    assert_eq!((table(&frame, Field::UdpDst), table(&frame, Field::IpTtl)), (53, 0));
    let mut options = ipv4(17, &[&[1, 1, 1, 1], &UDP[..]].concat());
    options[14] = 0x46;
    options[40..42].copy_from_slice(&[0, 53]); // where the checksum would be without options
    assert_eq!(table(&options, Field::UdpDst), 53);
}

#[test]
fn p12_padding_is_not_part_of_the_packet() {
    let mut frame = ipv4(17, &UDP);
    frame.extend([0; 20]);
    assert_eq!(table(&frame, Field::UdpDst), 53);
    frame[17] = 20 + 7; // ports lie in what is left, the header does not
    assert_eq!((table(&frame, Field::UdpDst), table(&frame, Field::IpProto)), (0, 17));
}

#[test]
fn p13_p14_p24_fragments_of_ipv4() {
    for (word, frag, action) in [(0x4000, 0, 53), (0x2000, 1, 53), (0x0001, 3, 0), (0x2001, 3, 0), (0x1fff, 3, 0)] {
        let mut frame = ipv4(17, &UDP);
        frame[20..22].copy_from_slice(&u16::to_be_bytes(word));
        assert_eq!(table(&frame, Field::IpFrag), frag, "{word:x}");
        assert_eq!(table(&frame, Field::IpProto), 17);
        assert_eq!(table(&frame, Field::UdpDst), if frag == 0 { 53 } else { 0 });
        assert_eq!(reads(&frame, Field::UdpDst, View::Action), action, "{word:x}");
        assert!(holds(Cond::Has(Header::Udp), &frame));
    }
    let mut first = ipv4(6, &TCP);
    first[20] = 0x20;
    assert_eq!((table(&first, Field::TcpDst), table(&first, Field::TcpFlags)), (0, 0x012), "flags are no ports");
}

#[test]
fn p15_a_malformed_ipv6_header_reads_0() {
    let mut frame = ipv6(17, &UDP);
    assert_eq!((table(&frame, Field::UdpDst), table(&frame, Field::IpTtl)), (53, 64));
    assert_eq!(table(&frame, Field::Ipv6Dst), 0xfc00_0000_0000_0000_0000_0000_0000_0002);
    assert_eq!(table(&frame[..53], Field::Ipv6Src), 0);
    frame[19] += 1;
    assert_eq!((table(&frame, Field::Ipv6Src), table(&frame, Field::IpProto)), (0, 0));
    frame[19] = 0;
    assert_eq!((table(&frame, Field::IpProto), table(&frame, Field::UdpDst)), (17, 0));
}

#[test]
fn p15_class_and_label_of_ipv6() {
    let mut frame = ipv6(17, &UDP);
    frame[14..18].copy_from_slice(&[0x6b, 0xa1, 0x23, 0x45]);
    assert_eq!((table(&frame, Field::IpDscp), table(&frame, Field::IpEcn)), (0xba >> 2, 2));
    assert_eq!(table(&frame, Field::Ipv6Label), 0x1_2345);
}

#[test]
fn p16_extension_headers_are_walked_and_others_end_the_walk() {
    let options = [17, 0, 0, 0, 0, 0, 0, 0];
    let after = |first: u8, header: &[u8]| ipv6(first, &[header, &UDP].concat());
    for first in [0, 43, 60] {
        assert_eq!(table(&after(first, &options), Field::UdpDst), 53, "{first}");
    }
    let authentication = [17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(table(&after(51, &authentication), Field::UdpDst), 53);
    for other in [50, 59, 135, 139] {
        let frame = after(other, &options);
        assert_eq!((table(&frame, Field::IpProto), table(&frame, Field::UdpDst)), (other.into(), 0));
    }
    let overrun = after(0, &[17, 9, 0, 0, 0, 0, 0, 0]);
    assert_ne!(table(&overrun, Field::Ipv6Src), 0);
    for field in [Field::IpProto, Field::IpTtl, Field::IpDscp, Field::IpFrag, Field::Ipv6Label, Field::UdpDst] {
        assert_eq!(table(&overrun, field), 0, "{field:?}");
    }
    assert!(!holds(Cond::Has(Header::Udp), &overrun));
}

#[test]
fn p17_p18_fragments_of_ipv6() {
    for (word, frag, proto, seen, action) in [
        (0x0001, 1, 17, 0, 53),
        (0x0009, 3, 44, 0, 0),
        (0x0008, 3, 44, 0, 0),
        (0, 0, 17, 53, 53),
        (0x0006, 1, 17, 0, 53),
    ] {
        let header = [17, 0, (word >> 8) as u8, word as u8, 0, 0, 0, 1];
        let frame = ipv6(44, &[&header[..], &UDP].concat());
        assert_eq!((table(&frame, Field::IpFrag), table(&frame, Field::IpProto)), (frag, proto), "{word:x}");
        assert_eq!((table(&frame, Field::UdpDst), reads(&frame, Field::UdpDst, View::Action)), (seen, action));
    }
}

#[test]
fn p19_more_than_16_extension_headers_are_an_overrun() {
    let chain = |n: usize| {
        let mut headers = [60, 0, 0, 0, 0, 0, 0, 0].repeat(n);
        headers[8 * (n - 1)] = 17;
        ipv6(60, &[headers, UDP.to_vec()].concat())
    };
    assert_eq!(table(&chain(16), Field::UdpDst), 53);
    assert_eq!((table(&chain(17), Field::IpProto), table(&chain(17), Field::IpTtl)), (0, 0));
    assert_ne!(table(&chain(17), Field::Ipv6Dst), 0);
}

#[test]
fn p20_tcp_needs_a_whole_header() {
    let good = ipv4(6, &TCP);
    assert_eq!((table(&good, Field::TcpSrc), table(&good, Field::TcpDst)), (1000, 80));
    assert_eq!(table(&good, Field::TcpFlags), 0x012);
    let mut flags = good.clone();
    flags[46] = 0x5f;
    assert_eq!(table(&flags, Field::TcpFlags), 0xf12);
    for offset in [0x40, 0x70, 0xf0] {
        let mut bad = good.clone();
        bad[46] = offset;
        assert_eq!((table(&bad, Field::TcpDst), table(&bad, Field::TcpFlags)), (0, 0), "{offset:x}");
        assert!(holds(Cond::Has(Header::Tcp), &bad));
    }
    assert_eq!(table(&ipv4(6, &TCP[..19]), Field::TcpDst), 0);
    assert_eq!(table(&ipv4(6, &TCP[..20]), Field::TcpDst), 80);
}

#[test]
fn p21_p22_other_transports_need_their_header() {
    assert_eq!((table(&ipv4(17, &UDP[..7]), Field::UdpDst), table(&ipv4(17, &UDP[..8]), Field::UdpDst)), (0, 53));
    assert_eq!(
        (table(&ipv4(132, &SCTP[..11]), Field::SctpDst), table(&ipv4(132, &SCTP[..12]), Field::SctpDst)),
        (0, 2000)
    );
    assert_eq!((table(&ipv4(1, &ECHO[..7]), Field::IcmpType), table(&ipv4(1, &ECHO), Field::IcmpType)), (0, 8));
    assert!(holds(Cond::Has(Header::Icmp), &ipv4(1, &ECHO[..4])));
    let neighbour = [135, 3, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        (table(&ipv6(58, &neighbour), Field::Icmpv6Type), table(&ipv6(58, &neighbour), Field::Icmpv6Code)),
        (135, 3)
    );
    assert_eq!(table(&ipv6(58, &neighbour[..7]), Field::Icmpv6Type), 0);
    // Each version has its own ICMP.
    assert!(!holds(Cond::Has(Header::Icmp), &ipv6(1, &ECHO)) && !holds(Cond::Has(Header::Icmpv6), &ipv4(58, &ECHO)));
    assert_eq!((table(&ipv6(1, &ECHO), Field::IcmpType), table(&ipv4(58, &ECHO), Field::Icmpv6Type)), (0, 0));
}

#[test]
fn p26_arp_is_ethernet_and_ipv4_or_reads_0() {
    let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 2];
    arp.extend([2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 2, 0, 0, 0, 0, 2, 10, 0, 0, 2]);
    for eth_type in [0x0806, 0x8035] {
        let frame = ethernet(eth_type, &arp);
        assert_eq!((table(&frame, Field::ArpOp), table(&frame, Field::ArpSpa)), (2, 0x0a00_0001));
        assert_eq!((table(&frame, Field::ArpTpa), table(&frame, Field::ArpTha)), (0x0a00_0002, 0x0200_0000_0002));
        assert_eq!(table(&frame, Field::ArpSha), 0x0200_0000_0001);
        assert_eq!(table(&frame[..41], Field::ArpOp), 0);
    }
    assert!(
        holds(Cond::Has(Header::Arp), &ethernet(0x0806, &[])) && holds(Cond::Has(Header::Rarp), &ethernet(0x8035, &[]))
    );
    for (at, byte) in [(1, 6), (2, 9), (4, 5), (5, 16)] {
        let mut bad = arp.clone();
        bad[at] = byte;
        assert_eq!(table(&ethernet(0x0806, &bad), Field::ArpSpa), 0, "byte {at}");
    }
    arp[6] = 1;
    let frame = ethernet(0x0806, &arp);
    assert_eq!((table(&frame, Field::ArpOp), table(&frame, Field::ArpTpa)), (0, 0x0a00_0002));
}

#[test]
fn p29_variables_and_connection_state_begin_at_0() {
    for field in [Field::CtState, Field::CtZone, Field::CtMark, Field::CtLabel, Field::InPort] {
        assert!(holds(is(field, 0), &ipv4(17, &UDP)), "{field:?}");
    }
    let place = Place { space: crate::hir::Space::Meta, offset: 0, width: 128 };
    let zero = Cond::Compare(Read { place, view: View::Table }, Match::Masked { value: 0, mask: u128::MAX });
    let ones = Action::Set { place, value: Value::Const(u128::MAX) };
    let twice = Eval::new(Arc::new(program(vec![vec![(zero, vec![ones, output(1)])]])));
    let (mut env, mut ctx) = (Recorder::default(), twice.ctx());
    for _ in 0..2 {
        let mut frame = [0; 14];
        let mut burst = Burst::new();
        burst.begin(0);
        // SAFETY: `frame` outlives the run and is touched by nobody else meanwhile.
        unsafe { burst.push(std::ptr::null_mut(), frame.as_mut_ptr(), 14, 0) };
        twice.run(&mut env, &mut ctx, &mut burst);
    }
    assert_eq!(env.calls.len(), 2);
}

#[test]
fn every_truncation_of_every_frame_is_survived() {
    let fragment = [17, 0, 0, 1, 0, 0, 0, 1];
    let frames = [
        ipv4(6, &TCP),
        ipv4(17, &UDP),
        ipv4(1, &ECHO),
        ipv4(132, &SCTP),
        ipv6(6, &TCP),
        ipv6(58, &ECHO),
        ipv6(44, &[&fragment[..], &UDP].concat()),
        ipv6(0, &[&[43, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 1, 0, 0, 0, 0], &UDP[..]].concat()),
        tagged(0x6064, 0x8100, &[0, 1, 8, 0]),
        ethernet(0x0806, &[0, 1, 8, 0, 6, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ethernet(0x0040, &[0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd, 0x60, 0, 0, 0]),
    ];
    let mut actions: Vec<_> = Field::ALL.iter().map(|&field| set(field, u128::MAX)).collect();
    actions.extend([Action::DecTtl, output(1)]);
    let compares = Field::ALL.iter().map(|&field| is(field, 77)).collect();
    let all = program(vec![vec![(Cond::Any(compares), vec![]), (Cond::True, actions)]]);
    for frame in frames {
        for len in 0..=frame.len() {
            let outcome = run(&all, &frame[..len]);
            assert_eq!(outcome.bytes.len(), len);
            assert_eq!(outcome.verdict == Verdict::drop(DropReason::Malformed), len < 14);
        }
    }
}
