//! Paths of devices in a tree, in IoTDB's form.

use serde::{Deserialize, Serialize};

/// Length of a long path, bytes.
const LONG_BYTES: usize = 270;
/// Length of a node of a long path, with its dot.
const NODE_BYTES: usize = 27;

/// The form of the paths of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Path {
    /// Three levels: `root.sg_0.d_0000000`.
    Short,
    /// Ten levels, about 70 bytes.
    Deep,
    /// The same with levels of filler below, 270 bytes.
    Long,
}

impl Path {
    /// The path of `device`.
    #[must_use]
    pub fn name(self, device: usize) -> String {
        match self {
            Self::Short => format!("root.sg_{}.d_{device:07}", device % 10),
            Self::Deep => {
                let nodes = ["land", "area", "city", "site", "hall", "line", "cell"];
                let levels = nodes.iter().enumerate().map(|(level, node)| {
                    // Ten children per node: the digits of the number form the tree.
                    format!(".{node}_{}", device / 10_usize.pow(6 - level as u32) % 10)
                });
                format!("root.sg_0{}.d_{device:07}", levels.collect::<String>())
            }
            Self::Long => {
                let mut path = Self::Deep.name(device);
                let mut level = 0;
                while path.len() < LONG_BYTES {
                    let room = (LONG_BYTES - path.len()).min(NODE_BYTES);
                    let filler = "abcdefghijklmnopqrstuvwxyz".chars().cycle().skip(level);
                    // A node begins with a dot, which must not be the last character of the path.
                    let dot = if room == NODE_BYTES { "." } else { "_" };
                    path.push_str(dot);
                    path.extend(filler.take(room - 1));
                    level += 1;
                }
                path
            }
        }
    }

    /// Bytes of the path of any device below ten million.
    #[must_use]
    pub fn bytes(self) -> usize {
        self.name(0).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn paths_are_as_long_and_as_deep_as_they_should_be() {
        assert_eq!(Path::Short.name(42), "root.sg_2.d_0000042");
        let deep = Path::Deep.name(1_234_567);
        assert_eq!(deep.split('.').count(), 10);
        assert_eq!(
            deep,
            "root.sg_0.land_1.area_2.city_3.site_4.hall_5.line_6.cell_7.d_1234567"
        );
        for device in [0, 9_999_999] {
            let long = Path::Long.name(device);
            assert_eq!(long.len(), LONG_BYTES);
            assert!(long.split('.').all(|node| !node.is_empty()), "{long}");
        }
    }

    #[test]
    fn every_device_has_a_path_of_its_own() {
        for path in [Path::Short, Path::Deep, Path::Long] {
            let names: BTreeSet<String> = (0..2_000).map(|device| path.name(device)).collect();
            assert_eq!(names.len(), 2_000);
            let last = path.name(9_999_999);
            let mut lengths = names.iter().chain([&last]);
            assert!(lengths.all(|name| name.len() == path.bytes()), "{path:?}");
        }
    }
}
