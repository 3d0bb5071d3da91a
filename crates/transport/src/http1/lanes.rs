//! Sixteen bytes looked at together: what the bytes of a head are is asked in a handful of instructions for all of them.
//!
//! SSE2 is part of every x86-64; elsewhere the same is left to the compiler.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_set1_epi8,
};

/// Sixteen bytes.
#[derive(Clone, Copy)]
pub(crate) struct Lanes(#[cfg(target_arch = "x86_64")] __m128i, #[cfg(not(target_arch = "x86_64"))] [u8; 16]);

impl Lanes {
    /// How many bytes.
    pub(crate) const COUNT: usize = 16;

    /// Those from `at` on, if there are so many.
    #[inline(always)]
    pub(crate) fn at(text: &[u8], at: usize) -> Option<Lanes> {
        text.get(at..)?.first_chunk().map(Lanes::of)
    }
}

/// All questions are answered with one bit per byte, that of the first byte lowest.
// SAFETY (of all of them): SSE2 is part of x86-64, and what is read is sixteen bytes that are borrowed.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
impl Lanes {
    #[inline(always)]
    fn of(bytes: &[u8; 16]) -> Lanes {
        Lanes(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
    }

    /// Which are this byte.
    #[inline(always)]
    pub(crate) fn equal(self, byte: u8) -> u32 {
        unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(self.0, _mm_set1_epi8(byte as i8))) as u32 }
    }

    /// Which are less than this byte, which is not 0.
    #[inline(always)]
    pub(crate) fn below(self, byte: u8) -> u32 {
        unsafe {
            let most = _mm_set1_epi8(byte.wrapping_sub(1) as i8);
            _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(self.0, most), self.0)) as u32
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Lanes {
    #[inline(always)]
    fn of(bytes: &[u8; 16]) -> Lanes {
        Lanes(*bytes)
    }

    #[inline(always)]
    pub(crate) fn equal(self, byte: u8) -> u32 {
        self.mask(|lane| lane == byte)
    }

    #[inline(always)]
    pub(crate) fn below(self, byte: u8) -> u32 {
        self.mask(|lane| lane < byte)
    }

    #[inline(always)]
    fn mask(self, holds: impl Fn(u8) -> bool) -> u32 {
        self.0.iter().enumerate().fold(0, |mask, (i, &lane)| mask | u32::from(holds(lane)) << i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_in_every_place() {
        assert!(Lanes::at(&[0; 20], 5).is_none());
        for lane in 0..=255 {
            for place in 0..16 {
                let mut bytes = [b'x'; 20];
                bytes[place + 4] = lane;
                let lanes = Lanes::at(&bytes, 4).unwrap();
                for byte in [1, b'\t', b' ', b'!', b':', 0x7F, 0x80, 0xFF] {
                    let expected = |holds: &dyn Fn(u8) -> bool| {
                        (0..16).filter(|&i| holds(bytes[i + 4])).fold(0, |mask, i| mask | 1 << i)
                    };
                    assert_eq!(lanes.equal(byte), expected(&|b| b == byte), "{lane} at {place} = {byte}");
                    assert_eq!(lanes.below(byte), expected(&|b| b < byte), "{lane} at {place} < {byte}");
                }
            }
        }
    }
}
