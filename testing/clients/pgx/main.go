// What a Go program does with Marigram through pgx.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func require(ok bool, what ...any) {
	if !ok {
		check(fmt.Errorf("unexpected: %v", what))
	}
}

func main() {
	ctx := context.Background()
	url := "postgres://me@127.0.0.1:" + os.Getenv("MARIGRAM_PORT") + "/main?sslmode=prefer"
	conn, err := pgx.Connect(ctx, url)
	check(err)
	defer conn.Close(ctx)

	_, err = conn.Exec(ctx, "CREATE TABLE go (time TIMESTAMP, dev STRING TAG, n BIGINT FIELD, x DOUBLE FIELD)")
	check(err)
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	_, err = conn.Exec(ctx, "INSERT INTO go (time, dev, n, x) VALUES ($1, $2, $3, $4)", start, "a", int64(7), 1.5)
	check(err)

	rows := make([][]any, 0, 20000)
	for i := range 20000 {
		rows = append(rows, []any{start.Add(time.Duration(i+1) * time.Second), "b", int64(i), float64(i) / 2})
	}
	copied, err := conn.CopyFrom(ctx, pgx.Identifier{"go"}, []string{"time", "dev", "n", "x"}, pgx.CopyFromRows(rows))
	check(err)
	require(copied == 20000, "copied", copied)

	var at time.Time
	var n int64
	var x float64
	check(conn.QueryRow(ctx, "SELECT time, n, x FROM go WHERE dev = $1", "a").Scan(&at, &n, &x))
	require(at.Equal(start) && n == 7 && x == 1.5, at, n, x)

	var count int64
	check(conn.QueryRow(ctx, "SELECT count(*) FROM go WHERE dev = $1 AND n >= $2", "b", int64(19990)).Scan(&count))
	require(count == 10, "count", count)

	batch := &pgx.Batch{}
	for i := range 5 {
		batch.Queue("SELECT count(*) FROM go WHERE n = $1", int64(i))
	}
	results := conn.SendBatch(ctx, batch)
	for range 5 {
		check(results.QueryRow().Scan(&count))
		require(count == 1, "batch", count)
	}
	check(results.Close())

	_, err = conn.Exec(ctx, "SELECT nope FROM go")
	require(err != nil, "an unknown column must be an error")
}
