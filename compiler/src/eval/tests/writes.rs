//! Writing fields: what changes, what does not, and that checksums follow.

use super::*;

/// The frame that comes out of a program which does this and sends.
fn after(frame: &[u8], actions: &[Action]) -> Vec<u8> {
    let outcome = run(&always([actions, &[output(1)]].concat()), frame);
    outcome.frames().remove(0)
}

/// Whether the checksums of an untagged IP frame without extension headers are right.
fn right(frame: &[u8]) -> bool {
    let v6 = frame[12] == 0x86;
    let (proto, segment, addresses) =
        if v6 { (frame[20], &frame[54..], &frame[22..54]) } else { (frame[23], &frame[34..], &frame[26..34]) };
    let transport = match proto {
        1 => covered_sum(1, false, segment, addresses) == 0xffff,
        6 | 17 | 58 => covered_sum(proto, true, segment, addresses) == 0xffff,
        132 => {
            let mut zeroed = segment.to_vec();
            zeroed[8..12].fill(0);
            crc32c(&zeroed).to_le_bytes() == segment[8..12]
        }
        _ => true,
    };
    transport && (v6 || sum(&frame[14..34], 0) == 0xffff)
}

use super::super::write::crc32c;

#[test]
fn the_crc_is_the_one_of_the_rfc() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
}

#[test]
fn every_write_is_read_back_and_checksums_follow() {
    let neighbour = [135, 0, 0, 0, 0, 0, 0, 0];
    let both = [Field::EthDst, Field::EthSrc, Field::IpDscp, Field::IpEcn, Field::IpTtl];
    let v4 = [Field::Ipv4Src, Field::Ipv4Dst];
    let v6 = [Field::Ipv6Src, Field::Ipv6Dst, Field::Ipv6Label];
    let cases: [(Vec<u8>, &[Field], &[Field]); 8] = [
        (ipv4(6, &TCP), &v4, &[Field::TcpSrc, Field::TcpDst]),
        (ipv4(17, &UDP), &v4, &[Field::UdpSrc, Field::UdpDst]),
        (ipv4(1, &ECHO), &v4, &[Field::IcmpType, Field::IcmpCode]),
        (ipv4(132, &SCTP), &v4, &[Field::SctpSrc, Field::SctpDst]),
        (ipv6(6, &TCP), &v6, &[Field::TcpSrc, Field::TcpDst]),
        (ipv6(17, &UDP), &v6, &[Field::UdpSrc, Field::UdpDst]),
        (ipv6(58, &neighbour), &v6, &[Field::Icmpv6Type, Field::Icmpv6Code]),
        (ipv6(132, &SCTP), &v6, &[Field::SctpSrc, Field::SctpDst]),
    ];
    for (frame, ip, transport) in cases {
        assert!(right(&frame), "{frame:x?}");
        for &field in both.iter().chain(ip).chain(transport) {
            let all = u128::MAX >> (128 - field.width());
            for value in [0, 1, 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10 & all, all] {
                let written = after(&frame, &[set(field, value)]);
                assert_eq!(reads(&written, field, View::Action), value, "{field:?}");
                assert!(right(&written), "{field:?} = {value:x}: {written:x?}");
                let others = Field::ALL.iter().filter(|&&other| other != field);
                for &other in others.filter(|f| ![Field::IcmpType, Field::Icmpv6Type].contains(f)) {
                    let view = View::Action;
                    assert_eq!(reads(&written, other, view), reads(&frame, other, view), "{field:?} changed {other:?}");
                }
            }
        }
    }
}

#[test]
fn slices_keep_the_rest_of_the_field() {
    let place = Place { space: crate::hir::Space::Field(Field::Ipv4Dst), offset: 8, width: 16 };
    let written = after(&ipv4(17, &UDP), &[Action::Set { place, value: Value::Const(0xabcd) }]);
    assert_eq!(reads(&written, Field::Ipv4Dst, View::Action), 0x0aab_cd02);
    assert!(right(&written));
}

#[test]
fn what_is_wrong_stays_wrong() {
    let mut frame = ipv4(6, &TCP);
    frame[24] ^= 1;
    frame[50] ^= 1;
    let written = after(&frame, &[set(Field::Ipv4Src, 0x0a09_0807), set(Field::TcpDst, 8080), set(Field::IpTtl, 3)]);
    assert_eq!(sum(&written[14..34], 0x100), sum(&frame[14..34], 0x100));
    assert_ne!(sum(&written[14..34], 0), 0xffff);
    assert_ne!(covered_sum(6, true, &written[34..], &written[26..34]), 0xffff);
    let mut sctp = ipv4(132, &SCTP);
    sctp[42] ^= 1;
    assert!(!right(&after(&sctp, &[set(Field::SctpSrc, 7)])));
}

#[test]
fn udp_without_checksum_stays_so_and_a_sum_of_0_is_sent_as_ones() {
    let mut none = ipv4(17, &UDP);
    none[40..42].fill(0);
    let written = after(&none, &[set(Field::UdpDst, 1), set(Field::Ipv4Dst, 9)]);
    assert_eq!(written[40..42], [0, 0]);
    // Chosen so that the checksum comes out as 0: the destination port takes up what the sum lacks.
    let frame = ipv4(17, &UDP);
    let checksum = u16::from_be_bytes([frame[40], frame[41]]);
    let written = after(&frame, &[set(Field::UdpDst, u128::from(checksum) + 53)]);
    assert_eq!(written[40..42], [0xff, 0xff]);
    assert!(right(&written));
}

#[test]
fn first_fragments_have_ports_to_write_and_later_ones_do_not() {
    let mut first = ipv4(17, &UDP);
    first[20] = 0x20;
    let written = after(&first, &[set(Field::UdpDst, 99)]);
    assert_eq!(written[36..38], [0, 99]);
    let mut later = ipv4(17, &UDP);
    later[21] = 1;
    let written = after(&later, &[set(Field::UdpDst, 99), set(Field::Ipv4Dst, 1), set(Field::Ipv4Src, 2)]);
    assert_eq!(written[34..], later[34..], "the payload of a later fragment is not touched");
    assert_eq!(reads(&written, Field::Ipv4Dst, View::Action), 1);
}

#[test]
fn a_tag_is_rewritten_and_loses_bit_12_and_nothing_is_written_without_one() {
    let tagged = ethernet(0x8100, &[0x70, 0x05, 0x08, 0x00]);
    assert_eq!(after(&tagged, &[])[14..16], [0x70, 0x05]);
    assert_eq!(after(&tagged, &[set(Field::VlanPcp, 2)])[14..16], [0x40, 0x05]);
    assert_eq!(after(&tagged, &[set(Field::VlanVid, 0x123)])[14..16], [0x61, 0x23]);
    assert_eq!(after(&tagged, &[set(Field::VlanVid, 5), set(Field::VlanPcp, 3)])[14..16], [0x70, 0x05]);
    let untagged = ipv4(17, &UDP);
    assert_eq!(after(&untagged, &[set(Field::VlanVid, 5), set(Field::VlanPcp, 5)]), untagged);
}

#[test]
fn arp_is_written_where_it_can_be_read() {
    let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1];
    arp.extend([0; 20]);
    let frame = ethernet(0x0806, &arp);
    let fields = [
        (Field::ArpOp, 2),
        (Field::ArpSpa, 0x0a00_0001),
        (Field::ArpTpa, 0x0a00_0002),
        (Field::ArpSha, 0x0200_0000_0001),
        (Field::ArpTha, 0x0200_0000_0002),
    ];
    let written = after(&frame, &fields.map(|(field, value)| set(field, value)));
    for (field, value) in fields {
        assert_eq!(reads(&written, field, View::Action), value);
    }
    assert_eq!(after(&frame[..41], &fields.map(|(field, value)| set(field, value))), frame[..41]);
}

#[test]
fn absent_and_malformed_headers_take_no_write() {
    let others = Field::ALL.iter().filter(|field| **field != Field::EthType);
    let everything: Vec<_> = others.map(|&field| set(field, 1)).collect();
    let mut malformed = ipv4(17, &UDP);
    malformed[14] = 0x44;
    let mut overrun = ipv6(0, &[17, 9, 0, 0, 0, 0, 0, 0]);
    for frame in [ethernet(0x1234, &[0; 40]), malformed] {
        assert_eq!(after(&frame, &everything)[12..], frame[12..]);
    }
    overrun[22..54].fill(0);
    let written = after(&overrun, &everything);
    assert_eq!((written[37], written[53]), (1, 1), "addresses can be read, so they can be written");
    assert_eq!(written[14..22], overrun[14..22]);
}

#[test]
fn the_destination_of_a_routed_packet_is_not_in_its_checksum() {
    let routing = |left| [17, 0, 0, left, 0, 0, 0, 0];
    let authentication = [43, 0, 0, 0, 0, 0, 0, 0];
    for (left, same) in [(1, true), (0, false)] {
        let direct = ipv6(43, &[&routing(left)[..], &[3, 232, 0, 53, 0, 12, 1, 1, 0, 0, 0, 0]].concat());
        let written = after(&direct, &[set(Field::Ipv6Dst, 7)]);
        assert_eq!(written[62..] == direct[62..], same);
        assert_ne!(after(&direct, &[set(Field::Ipv6Src, 7)])[62..], direct[62..]);
        let behind =
            ipv6(51, &[&authentication[..], &routing(left), &[3, 232, 0, 53, 0, 12, 1, 1, 0, 0, 0, 0]].concat());
        assert_eq!(after(&behind, &[set(Field::Ipv6Dst, 7)])[70..] == behind[70..], same);
    }
}

#[test]
fn a_move_reads_what_actions_see() {
    let mut first = ipv4(17, &UDP);
    first[20] = 0x20;
    let from = Value::Read(Place::field(Field::UdpSrc));
    let written = after(&first, &[Action::Set { place: Place::field(Field::UdpDst), value: from }]);
    assert_eq!(written[34..38], [0x03, 0xe8, 0x03, 0xe8]);
}
