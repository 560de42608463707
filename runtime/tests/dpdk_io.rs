//! Ports, pools and packets on a real EAL, without hugepages, as root or not. The EAL starts once in a process, so these
//! are steps of one test.
#![cfg(feature = "dpdk")]
#![allow(clippy::unwrap_used, reason = "this is all test")]

use pipec_abi::{BURST, Burst};
use pipec_runtime::env::Buffers;
use pipec_runtime::io::dpdk::{DATA_ROOM, Eal, EalOptions, Error, Mbuf, Mbufs, Pool, Port, PortConfig};
use pipec_runtime::io::spec::{self, PortSpec};

const MBUFS: u32 = 4095;

#[test]
fn ports_forward_and_every_buffer_returns() {
    let specs = spec::parse_all(&["a=null:size=60", "lo=ring", "b=null", "gone=af_packet:nosuch0"]).unwrap();
    let numbers = spec::numbers(&specs);
    let processors = std::thread::available_parallelism().unwrap();
    let eal = start_eal(&specs);
    assert_eq!(std::thread::available_parallelism().unwrap(), processors, "the start pins nobody");
    assert_eq!(Eal::start(&EalOptions::default()).unwrap_err(), Error::EalStarted);

    let pool = Pool::new(&eal, "test", MBUFS, DATA_ROOM).unwrap();
    assert_eq!((pool.available(), pool.in_use(), pool.data_room()), (MBUFS, 0, DATA_ROOM));
    let open = |i: usize| Port::open(&eal, &specs[i], numbers[i], &PortConfig::queues(1), &pool);
    let (a, lo, b) = (open(0).unwrap(), open(1).unwrap(), open(2).unwrap());
    assert_eq!((a.device_name(), lo.device_name(), b.device_name()), ("net_null0", "net_ring0", "net_null1"));
    assert!(open(3).unwrap_err().to_string().contains("no network interface `nosuch0`"));
    assert!(open(0).unwrap_err().to_string().contains("`net_null0` is open already"));
    let refused = Port::open(&eal, &"x=devargs:nosuch_driver0".parse().unwrap(), 0, &PortConfig::queues(1), &pool);
    assert!(refused.unwrap_err().to_string().starts_with("port `x=devargs:nosuch_driver0`: cannot open it: "));
    let wanted = 1 << 27; // more than any machine has
    let none = Pool::new(&eal, "large", wanted, DATA_ROOM).unwrap_err();
    assert!(matches!(none, Error::Memory { mbufs, .. } if mbufs == wanted), "{none}");

    forward_on_a_thread(&eal, a, lo, b);
    packet_functions(&pool);
    packets_of_an_env(&pool);
    several_queues(&eal, &pool);
    assert_eq!(pool.in_use(), 0, "every buffer is back");
}

fn start_eal(specs: &[PortSpec]) -> Eal {
    let memory_mib = Pool::memory_mib(MBUFS, DATA_ROOM);
    let eal =
        Eal::start(&EalOptions { memory_mib, args: vec!["--no-huge".to_string()], ..EalOptions::for_ports(specs) });
    let eal = eal.unwrap();
    assert!(!eal.has_hugepages());
    eal
}

/// null → ring → null, on a thread of its own as workers have it.
fn forward_on_a_thread(eal: &Eal, mut a: Port, mut lo: Port, mut b: Port) {
    const POLLS: usize = 100;
    assert!(lo.take_rx_queue(1).is_none());
    let (mut a_rx, mut lo_tx) = (a.take_rx_queue(0).unwrap(), lo.take_tx_queue(0).unwrap());
    let (mut lo_rx, mut b_tx) = (lo.take_rx_queue(0).unwrap(), b.take_tx_queue(0).unwrap());
    assert!(a.take_rx_queue(0).is_none(), "a queue is taken once");
    let eal = eal.clone();
    let worker = std::thread::spawn(move || {
        let _registered = eal.register_thread().unwrap();
        let mut burst = Burst::new();
        let mut pkts = [Mbuf::NULL; BURST];
        let mut sent = 0;
        for poll in 0..POLLS {
            burst.begin(poll as u64);
            let received = a_rx.receive(&mut burst, 1);
            assert_eq!((received.packets, received.bytes, received.no_mbuf), (32, 32 * 60, 0));
            assert_eq!((burst.len(), burst.in_port(31), burst.bytes(31).len()), (32, 1, 60));
            for i in 0..BURST {
                burst.bytes_mut(i).fill(i as u8);
            }
            assert_eq!(lo_tx.send_burst(&burst), 32);
            assert_eq!(lo_rx.rx_burst(&mut pkts), 32);
            assert!(pkts.iter().enumerate().all(|(i, pkt)| pkt.head().iter().all(|byte| *byte == i as u8)));
            let (to_b, to_drop) = pkts.split_at_mut(30);
            sent += b_tx.tx_burst(to_b);
            Mbuf::free_bulk(to_drop);
        }
        sent
    });
    assert_eq!(worker.join().unwrap(), 30 * POLLS);
    assert_eq!(lo.stats().rx_packets, 32 * POLLS as u64);
    assert_eq!(b.stats().tx_packets, 30 * POLLS as u64);
    assert!(a.link_up());
    assert_eq!(a.max_frame_len(), 1518);
}

fn packet_functions(pool: &Pool) {
    let bytes: Vec<u8> = (0..200).collect();
    let mut packet = pool.packet(&bytes).unwrap();
    assert_eq!((packet.len(), packet.head_len(), packet.segments(), packet.headroom()), (200, 200, 1, 128));
    assert!(packet.is_unique() && packet.is_contiguous());
    assert!(pool.packet(&vec![0; usize::from(DATA_ROOM) + 1]).is_none());

    let copy = packet.copy(pool).unwrap();
    packet.head_mut()[0] = 99;
    assert_eq!((copy.head(), copy.headroom()), (&bytes[..], 128));

    copy.refer(2);
    assert!(!copy.is_unique());
    copy.free();
    copy.free();
    assert!(copy.is_unique());

    assert!(packet.prepend(8) && packet.strip(9) && packet.len() == 199 && packet.head()[0] == 1);
    assert!(!packet.prepend(1000) && !packet.strip(1000));
    assert!(packet.append(10) && packet.len() == 209 && !packet.append(10_000));
    packet.truncate(199);

    // Two segments: 199 bytes and 200.
    assert!(packet.chain(copy));
    assert_eq!((packet.len(), packet.head_len(), packet.segments()), (399, 199, 2));
    let mut all = [0; 500];
    assert_eq!(packet.read(&mut all), 399);
    assert_eq!((&all[..199], &all[199..399]), (&bytes[1..], &bytes[..]));
    assert!(packet.make_contiguous(199, pool) && packet.segments() == 2, "enough lies in the first already");
    let shared = packet;
    shared.refer(1);
    assert!(packet.make_contiguous(300, pool), "a copy, as the other is shared");
    assert!(packet.is_contiguous() && packet.is_unique() && !packet.eq(&shared));
    assert_eq!(packet.head(), &all[..399]);
    assert!(!shared.is_contiguous() && shared.is_unique());
    packet.free();

    // Truncating gives back the segments behind the cut.
    let mut shared = shared;
    let before = pool.in_use();
    shared.truncate(50);
    assert_eq!((shared.len(), shared.segments(), before - pool.in_use()), (50, 1, 1));
    shared.free();

    let mut many = [Mbuf::NULL; 64];
    assert!(pool.alloc_bulk(&mut many));
    assert_eq!(pool.in_use(), 64);
    Mbuf::free_bulk(&many);
    assert!(!pool.alloc_bulk(&mut vec![Mbuf::NULL; MBUFS as usize + 1]), "all or none");
    assert_eq!(pool.in_use(), 0);
}

/// What a worker's `Env` asks of buffers.
fn packets_of_an_env(pool: &Pool) {
    let mut buffers = Mbufs::new(pool.clone());
    let bytes: Vec<u8> = (0..64).collect();
    let packet = pool.packet(&bytes).unwrap().opaque();
    buffers.share(packet, 2);
    buffers.free(packet);
    assert!(!Mbuf::from_opaque(packet).is_unique());
    buffers.free(packet);
    assert!(Mbuf::from_opaque(packet).is_unique());
    assert_eq!(buffers.frame_len(packet), 64);
    // Headers are put in front and taken off; what was there is there again.
    let data = buffers.prepend(packet, 50).unwrap();
    assert_eq!((data, buffers.frame_len(packet)), (Mbuf::from_opaque(packet).data(), 114));
    assert!(buffers.prepend(packet, 79).is_none(), "128 bytes are free in front of a packet");
    assert_eq!(Mbuf::from_opaque(packet).head()[50..], bytes);
    let data = buffers.strip(packet, 60);
    assert_eq!((data, buffers.frame_len(packet)), (Mbuf::from_opaque(packet).data(), 54));
    assert_eq!(Mbuf::from_opaque(packet).head(), &bytes[10..]);
    assert!(buffers.prepend(packet, 10).is_some());
    assert_eq!(Mbuf::from_opaque(packet).head(), bytes);
    buffers.free(packet);
}

/// Queues and MTU come as asked for, and a port opens again after it has been closed.
fn several_queues(eal: &Eal, pool: &Pool) {
    let workers = 2;
    for text in ["c=null", "d=ring:pair"] {
        let spec: PortSpec = text.parse().unwrap();
        for _ in 0..2 {
            let port = Port::open(eal, &spec, 7, &PortConfig::queues(workers), pool).unwrap();
            assert_eq!((port.rx_queues(), port.tx_queues()), (workers, workers), "{text}");
            port.close();
        }
    }
    let large = PortConfig { mtu: Some(4000), ..PortConfig::queues(1) };
    let port = Port::open(eal, &"e=null".parse().unwrap(), 8, &large, pool).unwrap();
    assert_eq!(port.max_frame_len(), 4018);
}
