//! An access gateway: homes come in over port 1, each in a VLAN of its own and with the same private addresses as the others;
//! users have public addresses behind port 2, beyond routes. (After `pipelines/access_gateway.pipe`, which is ESwitch's.)

use std::net::Ipv4Addr;

use super::{Content, SEED, frame_count, l3};
use crate::frames::{self, put};
use crate::random::Random;

/// Users of a home.
const A_HOME: u32 = 20;
/// Routes.
const ROUTES: u32 = 1000;

/// A user.
#[derive(Clone, Copy)]
struct User {
    vid: u16,
    private: u32,
    public: u32,
}

fn user(i: u32) -> User {
    let vid = (2 + i / A_HOME) as u16; // below 4,002
    User { vid, private: 0xc0a8_000a + i % A_HOME, public: 0x6440_0000 + i }
}

/// So many users, a thousand routes.
pub fn make(users: u32) -> Content {
    let mut random = Random::new(SEED);
    let routes = l3::routes(ROUTES, &mut random);
    let pairs: Vec<(User, (u32, u32))> = (0..frame_count(users))
        .map(|_| (user(random.below(u64::from(users)) as u32), routes[random.index(routes.len())]))
        .collect();
    let mut up = Vec::with_capacity(pairs.len());
    let mut down = Vec::with_capacity(pairs.len());
    for (user, (address, length)) in pairs {
        let peer = u64::from(address) | random.below(1 << 32) & (0xffff_ffff >> length);
        let [mut there, mut back] = [frames::plain(); 2];
        put(&mut there, 26, 4, u64::from(user.private));
        put(&mut there, 30, 4, peer);
        put(&mut back, 26, 4, peer);
        put(&mut back, 30, 4, u64::from(user.public));
        frames::seal(&mut back);
        up.push(frames::tagged(&there, user.vid));
        down.push(back);
    }
    Content { rules: rules(users, &routes), frames: vec![up, down] }
}

fn rules(users: u32, routes: &[(u32, u32)]) -> String {
    let mut lines: Vec<String> = vec!["table=0,priority=10,in_port=2,ip,vlan_tci=0 actions=goto_table:3".to_string()];
    for home in 0..users.div_ceil(A_HOME) {
        let vid = user(home * A_HOME).vid;
        lines.push(format!(
            "table=0,priority=10,in_port=1,dl_vlan={vid},ip actions=pop_vlan,load:{vid:#x}->NXM_NX_REG0[],goto_table:1"
        ));
    }
    for User { vid, private, public } in (0..users).map(user) {
        let [private, public] = [private, public].map(Ipv4Addr::from);
        lines.push(format!(
            "table=1,priority=10,reg0={vid:#x},ip,nw_src={private} actions=set_field:{public}->ip_src,goto_table:2"
        ));
        lines.push(format!(
            "table=3,priority=10,ip,nw_dst={public} actions=dec_ttl,set_field:{private}->ip_dst,\
             set_field:02:00:00:00:02:01->eth_dst,push_vlan:0x8100,set_field:{:#x}->vlan_vid,output:1",
            0x1000 | vid
        ));
    }
    for (address, length) in routes {
        let (prefix, hop) = (Ipv4Addr::from(*address), address & 0xff);
        lines.push(format!(
            "table=2,priority={length},ip,nw_dst={prefix}/{length} \
             actions=dec_ttl,set_field:02:00:00:00:01:{hop:02x}->eth_dst,output:2"
        ));
    }
    lines.join("\n") + "\n" + super::LAST
}
