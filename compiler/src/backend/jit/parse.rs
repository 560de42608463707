//! Parsing as CLIF: the common stack in place, all else by a call. What is common: no tag; IPv4 without options that is no
//! fragment; UDP and TCP whose headers are there. The results are those of `pipec_abi::header`.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value as Clif, types};
use pipec_abi::cenv;
use pipec_abi::header::{IPV4, L3, L4, PLAIN_IPV4, PLAIN_L2, PLAIN_L3, proto};

use super::body::{Body, UNALIGNED, imm};
use crate::plan::code::Value;

/// Where the quick ways and the slow one of a parser meet.
struct Ways {
    slow: Block,
    join: Block,
    result: Clif,
}

impl Body<'_, '_> {
    fn ways(&mut self) -> Ways {
        let (slow, join) = (self.b.create_block(), self.b.create_block());
        let result = self.b.append_block_param(join, types::I64);
        self.b.set_cold_block(slow);
        Ways { slow, join, result }
    }

    /// Goes on in a new block if `cond` holds, else the slow way.
    fn only_if(&mut self, cond: Clif, ways: &Ways) {
        let next = self.b.create_block();
        self.b.ins().brif(cond, next, &[], ways.slow, &[]);
        self.b.switch_to_block(next);
    }

    /// The slow way: a call; what comes out of all ways.
    fn finish(&mut self, function: usize, below: Value, ways: Ways) -> Clif {
        self.b.switch_to_block(ways.slow);
        let parsed = self.parse(function, below);
        self.b.ins().jump(ways.join, &[BlockArg::Value(parsed)]);
        self.b.switch_to_block(ways.join);
        ways.result
    }

    /// Parses IP.
    pub(super) fn l3(&mut self, l2: Value) -> Clif {
        let ways = self.ways();
        let word = self.value(l2);
        let (frame, len) = (self.frame(), self.frame_len());
        let eth_type = self.b.ins().band_imm_u(word, 0xffff);
        let at = self.b.ins().ushr_imm_u(word, 16);
        let at = self.b.ins().band_imm_u(at, 0xffff);
        let payload = self.b.ins().iadd_imm_u(at, 20);
        let is_ip = self.b.ins().icmp_imm_u(IntCC::Equal, eth_type, i64::from(IPV4));
        let whole = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, payload, len);
        let both = self.b.ins().band(is_ip, whole);
        self.only_if(both, &ways);
        let header = self.b.ins().iadd(frame, at);
        let version = self.b.ins().uload8(types::I64, UNALIGNED, header, 0);
        let total = self.swapped(types::I16, header, 2);
        let fragment = self.b.ins().uload16(types::I64, UNALIGNED, header, 6);
        let number = self.b.ins().uload8(types::I64, UNALIGNED, header, 9);
        let end = self.b.ins().iadd(at, total);
        let plain = self.b.ins().icmp_imm_u(IntCC::Equal, version, 0x45);
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, end, len);
        let long = self.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, total, 20);
        // Offset and "more fragments", in the order of the bytes.
        let bits = self.b.ins().band_imm_u(fragment, i64::from(0x3fff_u16.swap_bytes()));
        let in_one = self.b.ins().icmp_imm_u(IntCC::Equal, bits, 0);
        let good = self.b.ins().band(plain, fits);
        let also = self.b.ins().band(long, in_one);
        let good = self.b.ins().band(good, also);
        let end = self.b.ins().ishl_imm_u(end, 16);
        let number = self.b.ins().ishl_imm_u(number, 32);
        let flags = self.b.ins().iconst(types::I64, (L3::ADDRESSES | L3::REST) as i64);
        let parsed = self.b.ins().bor(payload, end);
        let parsed = self.b.ins().bor(parsed, number);
        let parsed = self.b.ins().bor(parsed, flags);
        self.b.ins().brif(good, ways.join, &[BlockArg::Value(parsed)], ways.slow, &[]);
        self.finish(cenv::offset::L3, l2, ways)
    }

    /// Whether the frame is `pipec_abi::header::is_plain_ipv4`: leads to one of two blocks.
    pub(super) fn branch_plain(&mut self, plain: Block, other: Block) {
        let (long, ip) = (self.b.create_block(), self.b.create_block());
        let (frame, len) = (self.frame(), self.frame_len());
        let least = PLAIN_IPV4 as i64;
        let whole = self.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, len, least);
        self.b.ins().brif(whole, long, &[], other, &[]);
        self.b.switch_to_block(long);
        // Ethernet type, version and length of the header; what follows, DSCP and ECN, may be anything.
        let start = self.b.ins().load(types::I32, UNALIGNED, frame, 12);
        let start = self.b.ins().band_imm_u(start, 0xff_ffff);
        let [high, low] = IPV4.to_be_bytes();
        let wanted = u32::from_le_bytes([high, low, 0x45, 0]);
        let is_ip = self.b.ins().icmp_imm_u(IntCC::Equal, start, i64::from(wanted));
        self.b.ins().brif(is_ip, ip, &[], other, &[]);
        self.b.switch_to_block(ip);
        let fragment = self.b.ins().uload16(types::I64, UNALIGNED, frame, 20);
        // Offset and "more fragments", in the order of the bytes.
        let bits = self.b.ins().band_imm_u(fragment, i64::from(0x3fff_u16.swap_bytes()));
        let in_one = self.b.ins().icmp_imm_u(IntCC::Equal, bits, 0);
        let total = self.swapped(types::I16, frame, 16);
        let payload = self.b.ins().iadd_imm_s(total, -20);
        let room = self.b.ins().iadd_imm_s(len, -least);
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, payload, room);
        let good = self.b.ins().band(in_one, fits);
        self.b.ins().brif(good, plain, &[], other, &[]);
    }

    /// Parses IP where the frame is plain.
    pub(super) fn plain_l3(&mut self) -> Clif {
        let (total, number) = self.of_plain();
        let end = self.b.ins().iadd_imm_u(total, PLAIN_L2.end() as i64);
        let end = self.b.ins().ishl_imm_u(end, 16);
        let number = self.b.ins().ishl_imm_u(number, 32);
        let same = self.b.ins().iconst(types::I64, PLAIN_L3.0 as i64);
        let parsed = self.b.ins().bor(end, number);
        self.b.ins().bor(parsed, same)
    }

    /// Length and protocol in the IP header of a plain frame.
    fn of_plain(&mut self) -> (Clif, Clif) {
        let frame = self.frame();
        let number = self.b.ins().uload8(types::I64, UNALIGNED, frame, 23);
        (self.swapped(types::I16, frame, 16), number)
    }

    /// Finds the transport header.
    pub(super) fn l4(&mut self, l3: Value, proto: Option<u8>, plain: bool) -> Clif {
        let ways = self.ways();
        // Where it begins, how long it is with its payload, and the protocol with bits that a fragment has.
        let (at, size, number) = if plain {
            let (total, number) = self.of_plain();
            let at = self.b.ins().iconst(types::I64, PLAIN_IPV4 as i64);
            (at, self.b.ins().iadd_imm_s(total, -20), number)
        } else {
            let word = self.value(l3);
            let at = self.b.ins().band_imm_u(word, 0xffff);
            let end = self.b.ins().ushr_imm_u(word, 16);
            let end = self.b.ins().band_imm_u(end, 0xffff);
            let number = self.b.ins().ushr_imm_u(word, 32);
            (at, self.b.ins().isub(end, at), self.b.ins().band_imm_u(number, 0x3ff))
        };
        let flags = self.b.ins().iconst(types::I64, (L4::ACTIONS | L4::MATCHES) as i64);
        let parsed = self.b.ins().bor(at, flags);
        let parsed = match proto {
            Some(proto @ (proto::TCP | proto::UDP)) => {
                self.only_if_whole(proto, at, size, number, &ways);
                parsed
            }
            _ => {
                let good = self.tcp_or_udp_is_whole(at, size, number, &ways);
                let none = self.b.ins().iconst(types::I64, L4::NONE.0 as i64);
                self.b.ins().select(good, parsed, none)
            }
        };
        self.b.ins().jump(ways.join, &[BlockArg::Value(parsed)]);
        self.finish(cenv::offset::L4, l3, ways)
    }

    /// The slow way unless the packet is whole, and of the one protocol that it can be of.
    fn only_if_whole(&mut self, proto: u8, at: Clif, size: Clif, number: Clif, ways: &Ways) {
        let is = self.b.ins().icmp_imm_u(IntCC::Equal, number, i64::from(proto));
        let least = if proto == proto::TCP { 20 } else { 8 };
        let whole = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, size, least);
        let both = self.b.ins().band(is, whole);
        self.only_if(both, ways);
        if proto == proto::TCP {
            let frame = self.frame();
            let header = self.b.ins().iadd(frame, at);
            let header_len = self.header_len(header);
            let beyond = self.b.ins().iadd_imm_s(header_len, -20);
            let room = self.b.ins().iadd_imm_s(size, -20);
            let fits = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, beyond, room);
            self.only_if(fits, ways);
        }
    }

    /// The slow way unless it is TCP or UDP. Which of both, and whether it is whole, no branch depends on: traffic mixes them.
    fn tcp_or_udp_is_whole(&mut self, at: Clif, size: Clif, number: Clif, ways: &Ways) -> Clif {
        let is_tcp = self.b.ins().icmp_imm_u(IntCC::Equal, number, i64::from(proto::TCP));
        let is_udp = self.b.ins().icmp_imm_u(IntCC::Equal, number, i64::from(proto::UDP));
        let either = self.b.ins().bor(is_tcp, is_udp);
        self.only_if(either, ways);
        let [eight, twenty, zero] = [8, 20, 0].map(|number| self.b.ins().iconst(types::I64, number));
        let least = self.b.ins().select(is_tcp, twenty, eight);
        let whole = self.b.ins().icmp(IntCC::SignedGreaterThanOrEqual, size, least);
        // Of UDP this reads 0 and asks for 0.
        let floor = self.b.ins().select(is_tcp, twenty, zero);
        let reads = self.b.ins().band(is_tcp, whole);
        let frame = self.frame();
        let header = self.b.ins().iadd(frame, at);
        let header = self.or_zeros(reads, header, 12);
        let header_len = self.header_len(header);
        let (beyond, room) = (self.b.ins().isub(header_len, floor), self.b.ins().isub(size, floor));
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, beyond, room);
        self.b.ins().band(whole, fits)
    }

    /// Bytes that a TCP header says it has.
    fn header_len(&mut self, header: Clif) -> Clif {
        let words = self.b.ins().uload8(types::I64, UNALIGNED, header, imm(12));
        let bytes = self.b.ins().ushr_imm_u(words, 2);
        self.b.ins().band_imm_u(bytes, 0x3c)
    }

    /// Parses Ethernet: in place unless there is a tag or no type.
    pub(super) fn l2(&mut self) -> Clif {
        let frame = self.frame();
        let eth_type = self.swapped(types::I16, frame, 12);
        let (slow, join) = (self.b.create_block(), self.b.create_block());
        let result = self.b.append_block_param(join, types::I64);
        let small = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, eth_type, 0x600);
        let tag = self.b.ins().icmp_imm_u(IntCC::Equal, eth_type, 0x8100);
        let service_tag = self.b.ins().icmp_imm_u(IntCC::Equal, eth_type, 0x88a8);
        let any = self.b.ins().bor(small, tag);
        let any = self.b.ins().bor(any, service_tag);
        let end = self.b.ins().iconst(types::I64, 14 << 16);
        let fast = self.b.ins().bor(eth_type, end);
        self.b.set_cold_block(slow);
        self.b.ins().brif(any, slow, &[], join, &[BlockArg::Value(fast)]);
        self.b.switch_to_block(slow);
        let i = self.i32();
        let limit = self.b.ins().iconst(types::I32, i64::from(self.shared.plan.vlan_limit));
        let burst = self.burst;
        let parsed = self.call(cenv::offset::L2, &[burst, i, limit], Some(types::I64));
        self.b.ins().jump(join, &[BlockArg::Value(parsed)]);
        self.b.switch_to_block(join);
        result
    }

    pub(super) fn parse(&mut self, function: usize, below: Value) -> Clif {
        let (i, burst, below) = (self.i32(), self.burst, self.value(below));
        self.call(function, &[burst, i, below], Some(types::I64))
    }
}
