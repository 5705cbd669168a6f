//! Tests that transformations account for the points that they hold.

use super::*;
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};

#[test]
fn a_long_moving_average_counts_the_values_that_it_holds() {
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 20));
    let budget = Budget::new(&pool);
    let average = Transform::MovingAverage(1_000_000);
    let mut stage = TransformStage::new(average, Arc::new([]), budget.clone());
    let series = Arc::new(SeriesKey {
        name: "m".into(),
        tags: Vec::new(),
    });
    let mut out = Vec::new();
    for time in 0..100_000 {
        let point = Point {
            series: Arc::clone(&series),
            time,
            value: Value::Integer(time),
            row: None,
        };
        stage.push(point, &mut out);
    }
    assert!(out.is_empty());
    assert!(budget.check().is_err());
}
