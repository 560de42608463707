//! Random numbers that are those of NumPy's `default_rng(seed)`, so that workloads are the same as those of `workloads.py`,
//! frame by frame, and a figure measured there can be set beside one measured here.
//!
//! In: a seed. Out: numbers, choices, orders. Never: a source other than the seed.
//!
//! The generator is PCG64 (O'Neill: PCG, a family of simple fast space-efficient statistically good algorithms, 2014; XSL-RR
//! of 128 bits), seeded by her `seed_seq_fe`. Numbers below a bound are Lemire's (Fast random integer generation in an
//! interval, 2019), on halves of an output where 32 bits are enough. Exponential numbers are made by the ziggurat of
//! Marsaglia and Tsang (2000) with 256 layers.

use std::sync::LazyLock;

/// The multiplier of PCG's 128-bit generator.
const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

/// A source of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: u128,
    increment: u128,
    /// The upper half of an output whose lower half has been given out.
    half: Option<u32>,
}

impl Random {
    /// The numbers of this seed.
    pub fn new(seed: u32) -> Random {
        let [a, b, c, d] = seeds(seed).map(u128::from);
        let increment = (c << 64 | d) << 1 | 1;
        let state = increment.wrapping_add(a << 64 | b).wrapping_mul(MULTIPLIER).wrapping_add(increment);
        Random { state, increment, half: None }
    }

    /// 64 random bits.
    fn whole(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
        ((self.state >> 64) as u64 ^ self.state as u64).rotate_right((self.state >> 122) as u32)
    }

    /// 32 random bits.
    fn half(&mut self) -> u32 {
        if let Some(half) = self.half.take() {
            return half;
        }
        let whole = self.whole();
        self.half = Some((whole >> 32) as u32);
        whole as u32
    }

    /// A number below `bound`, which is at most 2^63; 0 when it is 0 or 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        match bound {
            0 | 1 => 0,
            0x1_0000_0000 => u64::from(self.half()),
            2..0x1_0000_0000 => {
                let threshold = (0x1_0000_0000 - bound) % bound;
                loop {
                    let product = u64::from(self.half()) * bound;
                    if product & 0xffff_ffff >= threshold {
                        return product >> 32;
                    }
                }
            }
            _ => {
                let threshold = bound.wrapping_neg() % bound;
                loop {
                    let product = u128::from(self.whole()) * u128::from(bound);
                    if product as u64 >= threshold {
                        return (product >> 64) as u64;
                    }
                }
            }
        }
    }

    /// A number from `low` up to, and not including, `high`.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low))
    }

    /// An index of a list of this length, which is not 0.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number from 0 up to, and not including, 1.
    pub fn unit(&mut self) -> f64 {
        (self.whole() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// An index, each as likely as its weight says.
    pub fn weighted(&mut self, weights: &Weights) -> usize {
        let at = self.unit();
        weights.0.partition_point(|below| *below <= at)
    }

    /// Puts items, fewer than 2^32, in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let mask = (i + 1).next_power_of_two() - 1;
            let at = loop {
                let at = self.half() as usize & mask;
                if at <= i {
                    break at;
                }
            };
            items.swap(i, at);
        }
    }

    /// A number of Lomax's distribution (Pareto's, less 1) of shape 1.
    pub fn pareto(&mut self) -> f64 {
        self.exponential().exp_m1()
    }

    fn exponential(&mut self) -> f64 {
        let Ziggurat { inside, width, height } = &*ZIGGURAT;
        loop {
            let bits = self.whole() >> 3;
            let (layer, bits) = ((bits & 0xff) as usize, bits >> 8);
            let x = bits as f64 * width[layer];
            if bits < inside[layer] {
                return x;
            }
            if layer == 0 {
                return TAIL - (-self.unit()).ln_1p();
            }
            if (height[layer - 1] - height[layer]) * self.unit() + height[layer] < (-x).exp() {
                return x;
            }
        }
    }
}

/// What `weighted` chooses by: shares of 1, summed up.
#[derive(Clone, Debug)]
pub struct Weights(Vec<f64>);

impl Weights {
    /// Of at least one weight above 0.
    pub fn new(weights: impl IntoIterator<Item = f64>) -> Weights {
        let weights: Vec<f64> = weights.into_iter().collect();
        let total = sum(&weights);
        Weights::shares(weights.into_iter().map(|weight| weight / total))
    }

    /// Of at least one share above 0, of shares that make about 1.
    pub fn shares(shares: impl IntoIterator<Item = f64>) -> Weights {
        let mut shares: Vec<f64> = shares.into_iter().collect();
        let mut before = 0.0;
        for share in &mut shares {
            before += *share;
            *share = before;
        }
        let last = shares.last().copied().unwrap_or(1.0);
        shares.iter_mut().for_each(|share| *share /= last);
        Weights(shares)
    }
}

/// A sum in pairs of pairs, in the order that NumPy adds; another order would round otherwise.
fn sum(numbers: &[f64]) -> f64 {
    match numbers.len() {
        0..8 => numbers.iter().fold(0.0, |sum, number| sum + number),
        8..=128 => {
            let (eights, rest) = numbers.as_chunks::<8>();
            let mut r = eights[0];
            for eight in &eights[1..] {
                r.iter_mut().zip(eight).for_each(|(sum, number)| *sum += number);
            }
            rest.iter()
                .fold(((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7])), |sum, number| sum + number)
        }
        length => {
            let (left, right) = numbers.split_at(length / 2 / 8 * 8);
            sum(left) + sum(right)
        }
    }
}

/// A generator's first state of a seed: its bits are mixed into four words, and eight are drawn from them.
fn seeds(seed: u32) -> [u64; 4] {
    let mixed = |value: u32, constant: &mut u32, multiplier: u32| {
        let value = value ^ *constant;
        *constant = constant.wrapping_mul(multiplier);
        let value = value.wrapping_mul(*constant);
        value ^ value >> 16
    };
    let mut constant = 0x43b0_d7e5;
    let mut pool = [seed, 0, 0, 0].map(|word| mixed(word, &mut constant, 0x931e_8875));
    for from in 0..4 {
        for to in (0..4).filter(|to| *to != from) {
            let other = mixed(pool[from], &mut constant, 0x931e_8875);
            let both = pool[to].wrapping_mul(0xca01_f9dd).wrapping_sub(other.wrapping_mul(0x4973_f715));
            pool[to] = both ^ both >> 16;
        }
    }
    let mut constant = 0x8b51_f9dd;
    let mut words =
        [0, 1, 2, 3, 0, 1, 2, 3].map(|at| u64::from(mixed(pool[at], &mut constant, 0x58f3_8ded))).into_iter();
    [(); 4].map(|()| words.next().unwrap_or(0) | words.next().unwrap_or(0) << 32)
}

/// Where the ziggurat's tail begins, and the area of each of its layers.
const TAIL: f64 = 7.697_117_470_131_05;
const AREA: f64 = 0.003_949_659_822_581_557;

/// The layers below the curve e^-x, from the tail (0) and the longest layer (255) up to the shortest (1).
struct Ziggurat {
    /// Below this, a number of 53 bits lies inside the layer above too.
    inside: [u64; 256],
    /// The layer's width, for a number of 53 bits.
    width: [f64; 256],
    /// The curve's height at the layer's end.
    height: [f64; 256],
}

static ZIGGURAT: LazyLock<Ziggurat> = LazyLock::new(|| {
    let scale = (1u64 << 53) as f64;
    let mut layers = Ziggurat { inside: [0; 256], width: [0.0; 256], height: [0.0; 256] };
    let base = AREA / (-TAIL).exp();
    (layers.inside[0], layers.width[0], layers.height[0]) = ((TAIL / base * scale) as u64, base / scale, 1.0);
    let mut end = TAIL;
    for layer in (1..256).rev() {
        (layers.width[layer], layers.height[layer]) = (end / scale, (-end).exp());
        let above = -(AREA / end + (-end).exp()).ln();
        layers.inside[layer] = if layer > 1 { (above / end * scale) as u64 } else { 0 };
        end = above;
    }
    layers
});

#[cfg(test)]
mod tests {
    use super::*;

    /// What `numpy.random.default_rng(11)` gives.
    #[test]
    fn numbers_are_numpys() {
        let seeded = || Random::new(11);
        let mut random = seeded();
        assert_eq!(
            [(); 3].map(|()| random.whole()),
            [0x20e9_fa10_2240_cc4e, 0x7fd0_ac8a_cc0d_7a67, 0x99fb_cbde_970c_647c]
        );
        let mut random = seeded();
        assert_eq!([(); 3].map(|()| random.below(1 << 40)), [141_364_432_930, 548_961_815_244, 661_354_438_295]);
        let mut random = seeded();
        assert_eq!([(); 5].map(|()| random.below(1000)), [133, 128, 797, 499, 590]);
        assert_eq!([random.unit(), random.unit()], [0.028689008371944547, 0.14792608457745593]);
        assert_eq!(random.below(7), 4, "the half that was left");
        let mut order: Vec<u32> = (0..10).collect();
        seeded().shuffle(&mut order);
        assert_eq!(order, [8, 5, 6, 1, 9, 3, 4, 2, 7, 0]);
    }

    #[test]
    fn choices_are_numpys() {
        let (mut random, weights) = (Random::new(11), Weights::shares([0.35, 0.05, 0.1, 0.5]));
        assert_eq!([(); 6].map(|()| random.weighted(&weights)), [0, 2, 3, 0, 0, 3]);
        assert_eq!(random.index(2), 1);
        let squares: Vec<f64> = (1..=1000).map(|k| 1.0 / f64::from(k * k)).collect();
        assert_eq!(sum(&squares), 1.6439345666815601);
    }

    #[test]
    fn exponential_numbers_are_numpys() {
        let mut random = Random::new(11);
        let near = |found: f64, known: f64| assert!((found - known).abs() < known * 1e-12, "{found} {known}");
        for known in [0.22959243131744037, 0.53830700784231, 1.122407681200349, 0.04579703985182938] {
            near(random.exponential(), known);
        }
        let most = (4..3_000_000).map(|_| random.exponential()).fold(0.0, f64::max);
        near(most, 14.2738013140896);
        assert_eq!(random.below(1_000_000), 550_015, "as many outputs were used");
        near(Random::new(11).pareto(), 0.25808714850178893);
    }
}
