<?php
declare(strict_types=1);
namespace App\Orders;
use App\Models\{User, Line};
const LIMIT = 10;
/** An order. */
#[Entity(table: 'orders')]
final class Order extends Model implements JsonSerializable
{
    use HasEvents, SoftDeletes;
    public const STATUS = 'new';
    private static int $count = 0;
    public function __construct(private readonly int $id, protected ?string $name = null) {}
    public static function make(int ...$ids): static { return new static($ids[0]); }
    #[Pure]
    public function total(): float { return 1.0; }
    abstract protected function pay(): void;
    public function __get($n) { return $this->$n; }
    public function handler(): callable { return fn($x) => $x * 2; }
}
interface Repo { public function find(int $id): ?Order; }
trait HasEvents { public function fire(): void {} }
enum Suit: string { case Hearts = 'H'; public function label(): string { return 'x'; } }
abstract class Base { }
function helper(array $a): int { return count($a); }
$closure = function ($x) use ($y) { return $x; };
return new class { public function anon() {} };
if (!function_exists('dd')) { function dd() {} }
